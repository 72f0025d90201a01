#!/usr/bin/env bash
# Looks at the page of musterd --http in Chromium, while a job fails, restarts and ends, and at the page that muster
# replay makes of it (test/page/page_checks.js).
#   scripts/page_checks.sh                 some seconds
#   scripts/page_checks.sh --screenshots   and writes those of docs/observing.md
# Needs Debian's chromium, and node with npm, from which playwright-core comes, into ${XDG_CACHE_HOME:-~/.cache}/muster:
#   apt-get install --no-install-recommends chromium
# Not part of scripts/test.sh. Everything stays on loopback.
set -euo pipefail
cd "$(dirname "$0")/.."
for tool in chromium node npm; do
  command -v "$tool" >/dev/null || {
    echo "page_checks: $tool is missing; the head of $0 says what to install" >&2
    exit 2
  }
done
modules=${XDG_CACHE_HOME:-$HOME/.cache}/muster/playwright
[ -d "$modules/node_modules/playwright-core" ] ||
  npm install --silent --no-audit --no-fund --prefix "$modules" playwright-core@1
bazel build //launcher:muster //rendezvous:musterd 2>/dev/null || bazel build //launcher:muster //rendezvous:musterd
NODE_PATH=$modules/node_modules exec node test/page/page_checks.js bazel-bin/launcher/muster \
  bazel-bin/rendezvous/musterd "$(command -v chromium)" "$@"
