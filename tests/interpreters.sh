#!/bin/sh
# Prints `3.12=/path/to/python3.12` for each of the given versions that is present and is not the version of `python3`.
default=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2> /dev/null)
for version in "$@"; do
    [ "$version" = "$default" ] && continue
    for candidate in "$(command -v "python$version")" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$version".*/bin/python; do
        [ -n "$candidate" ] || continue
        if "$candidate" -c "import sys, venv; sys.exit('%d.%d' % sys.version_info[:2] != '$version')" 2> /dev/null; then
            echo "$version=$candidate"
            break
        fi
    done
done
