#!/usr/bin/env bash
# What must hold before every commit: format, layering, build, tests.
set -euo pipefail
cd "$(dirname "$0")/.."

echo "check: format"
git ls-files -co --exclude-standard '*.cc' '*.h' | xargs -r clang-format --dry-run -Werror

echo "check: layering"
scripts/check_layering.sh

echo "check: binaries"
scripts/check_binaries.sh

scripts/test.sh "$@"
