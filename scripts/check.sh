#!/usr/bin/env bash
# The checks before every commit: format, layering, build, tests.
#
#   scripts/check.sh            all of it; arguments are passed to `bazel test`
#   scripts/check.sh --quick    during work: format, layering, and the fast tests (size "small")
set -euo pipefail
cd "$(dirname "$0")/.."

echo "check: format"
git ls-files -co --exclude-standard '*.cc' '*.h' | xargs -r clang-format --dry-run -Werror

echo "check: layering"
scripts/check_layering.sh

if [ "${1-}" = --quick ]; then
  shift
  echo "check: small tests"
  exec bazel test --build_tests_only --test_size_filters=small "$@" //...
fi

echo "check: binaries"
scripts/check_binaries.sh

scripts/test.sh "$@"
