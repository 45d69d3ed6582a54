#!/bin/sh
# Says in one sentence what is missing for a build, and how to get it. The argument is the interpreter to link to.
python=${1:-python3}

fail() {
    echo "error: $1" >&2
    echo "  hint: $2" >&2
    exit 2
}

command -v cargo > /dev/null || fail "Rust is missing" "install Rust 1.92 or newer with rustup"
rust=$(rustc --version | cut -d ' ' -f 2)
[ "$(printf '1.92.0\n%s\n' "$rust" | sort -V | head -n 1)" = 1.92.0 ] ||
    fail "Rust $rust is too old" "update to 1.92 or newer: rustup update stable"
command -v cc > /dev/null || fail "A C compiler is missing: cargo links with it" "install gcc or clang, for example the package build-essential"
command -v "$python" > /dev/null || fail "Python is missing" "install Python 3.11 or newer, or name one: make PYTHON=/path/to/python3"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$("$python" --version) is too old" "name Python 3.11 or newer: make PYTHON=/path/to/python3"
"$python" -c 'import venv, ensurepip' 2> /dev/null ||
    fail "Python's venv module is missing" "install it, for example the package python3-venv"
"$python" -c 'import sysconfig, sys; sys.exit(not sysconfig.get_config_var("Py_ENABLE_SHARED"))' ||
    fail "$("$python" --version) has no shared libpython, which the Rust tests link" "use a Python that was configured with --enable-shared: make PYTHON=/path/to/python3"
