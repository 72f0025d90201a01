#!/usr/bin/env bash
# Sets up, builds everything and runs every test. The last line counts test cases:
#   N passed, M failed[, K skipped]
# Exits with 0 only if none failed. Arguments are handed to `bazel test`.
set -uo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh || exit 1
targets=(//...)
echo "test: building"
bazel build "$@" "${targets[@]}"
built=$?
echo "test: running"
bazel test --keep_going "$@" "${targets[@]}"
tested=$?
echo "test: a model of one's own"
own=$(scripts/own_model.sh | tee >(cat >&2) | tail -n 1)
scripts/count_tests.py "$own"
counted=$?
[ $built -eq 0 ] && [ $tested -eq 0 ] && [ $counted -eq 0 ]
