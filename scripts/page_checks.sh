#!/usr/bin/env bash
# Looks at the page of musterd --http in Chromium, while a job fails, restarts and ends, and at the page that muster
# replay makes of it (test/page/page_checks.js).
#   scripts/page_checks.sh                     some seconds
#   scripts/page_checks.sh --screenshots       and writes those of docs/observing.md
#   scripts/page_checks.sh --trace2html=FILE   and has Chromium's trace viewer read the trace of muster replay; FILE is
#                                              tracing/bin/trace2html of github.com/catapult-project/catapult
# Then it holds docs/observing/openapi.json against the rules of OpenAPI, and the event logs of that job against
# docs/event_log.schema.json (test/page/schema_checks.js).
# Needs Debian's chromium, and node with npm, from which playwright-core, axe-core, ajv and an OpenAPI validator come,
# into ${XDG_CACHE_HOME:-~/.cache}/muster:
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
for package in playwright-core axe-core ajv ajv-formats @seriousme/openapi-schema-validator; do
  [ -d "$modules/node_modules/$package" ] || {
    npm install --silent --no-audit --no-fund --prefix "$modules" playwright-core@1 axe-core@4 ajv@8 ajv-formats@3 \
      @seriousme/openapi-schema-validator@2
    break
  }
done
bazel build //launcher:muster //rendezvous:musterd 2>/dev/null || bazel build //launcher:muster //rendezvous:musterd
logs=$(mktemp -d)
trap 'rm -r "$logs"' EXIT
export NODE_PATH=$modules/node_modules
node test/page/page_checks.js bazel-bin/launcher/muster bazel-bin/rendezvous/musterd "$(command -v chromium)" \
  "--keep-logs=$logs" "$@"
node test/page/schema_checks.js docs/observing/openapi.json docs/event_log.schema.json "$logs"/*
