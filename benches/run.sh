#!/bin/sh
# `make bench`: dispatch beside plain Python and pyo3-async-runtimes, for each Python that has an environment and that the project is
# measured on; then recorded conversations beside a plain-Python player. Tables on stdout, JSON in target/bench/.
set -eu
cd "$(dirname "$0")/.."
mkdir -p target/bench

for environment in .venv .venv-3.11 .venv-3.13; do
    [ -x "$environment/bin/python" ] || continue
    version=$("$environment/bin/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    echo
    echo "Dispatch, Python $version"
    # Another interpreter is another build: it has a target folder of its own.
    target=target
    [ "$environment" = .venv ] || target="target/bench-$version"
    PYO3_PYTHON="$PWD/$environment/bin/python" VIRTUAL_ENV="$PWD/$environment" CARGO_TARGET_DIR="$target" \
        cargo bench --quiet --bench dispatch -- --json "target/bench/dispatch-$version.json" "$@"
done

# What a turn costs beside its model.
echo
PYO3_PYTHON="$PWD/.venv/bin/python" VIRTUAL_ENV="$PWD/.venv" cargo bench --quiet --bench turn

# What hooks of a manifest add to a request.
echo
PYO3_PYTHON="$PWD/.venv/bin/python" VIRTUAL_ENV="$PWD/.venv" cargo bench --quiet --bench quickapp

# What generated code costs.
echo
PYO3_PYTHON="$PWD/.venv/bin/python" VIRTUAL_ENV="$PWD/.venv" cargo bench --quiet --bench execute

# How cost grows: the plots of the documents.
PYO3_PYTHON="$PWD/.venv/bin/python" VIRTUAL_ENV="$PWD/.venv" cargo bench --quiet --bench dispatch -- --growth docs

# The recorded conversations that TENTERHOOK_SHARED has, where it is set; else those of the example, many times over.
input=${TENTERHOOK_SHARED:-none}/data/airline/conversations.jsonl
if [ ! -f "$input" ]; then
    input=target/bench/conversations.jsonl
    for _ in $(seq 100); do cat hooks-examples/mask-private-data/conversations.jsonl; done > "$input"
fi
echo
echo "Replay of $(basename "$(dirname "$input")")/$(basename "$input") through hooks-examples/mask-private-data"
for jobs in 8 1; do
    .venv/bin/python benches/replay.py hooks-examples/mask-private-data "$input" --command .venv/bin/tenterhook \
        --jobs "$jobs" --json "target/bench/replay-jobs-$jobs.json"
done

echo
echo "Check of many modules: the binary, then the wheel's command"
cargo build --quiet --release
for command in target/release/tenterhook .venv/bin/tenterhook; do
    .venv/bin/python benches/check.py --command "$command" --json "target/bench/check-$(basename "$(dirname "$command")").json"
done
