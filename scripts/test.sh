#!/usr/bin/env bash
# Sets up, builds everything and runs every test. The last line counts test cases:
#   N passed, M failed[, K skipped]
# Exits with 0 only if none failed. Arguments are passed to `bazel test`.
set -uo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh || exit 1
targets=(//...)
echo "test: building"
bazel build "$@" "${targets[@]}"
built=$?
echo "test: running, and beside it a model of one's own"
log=$(mktemp)
# Asked before the tests, during which Bazel answers nothing else.
MUSTER=$(bazel info bazel-bin 2>/dev/null)/launcher/muster
export MUSTER
# Two minutes of compiling, while the tests leave CPU time; a process group, so that it ends with
# this script.
setsid nice scripts/own_model.sh >"$log" 2>&1 &
own=$!
trap 'kill -- -$own 2>/dev/null; rm -f "$log"' EXIT
bazel test --keep_going "$@" "${targets[@]}"
tested=$?
wait $own
cat "$log"
scripts/count_tests.py "$(tail -n 1 "$log")"
counted=$?
[ $built -eq 0 ] && [ $tested -eq 0 ] && [ $counted -eq 0 ]
