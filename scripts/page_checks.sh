#!/usr/bin/env bash
# Checks the page of musterd --http in Chromium, while a job fails, restarts and ends, and muster
# replay's page of it (test/page/page_checks.js).
#   scripts/page_checks.sh                     some seconds
#   scripts/page_checks.sh --screenshots       also writes those of docs/observing.md
#   scripts/page_checks.sh --trace2html=FILE   also has Chromium's trace viewer read the trace of
#                                              muster replay; FILE is tracing/bin/trace2html of
#                                              github.com/catapult-project/catapult
# Before that it feeds late answers to the page's script (test/page/late_answers.js, which needs
# only node). Then it checks docs/observing/openapi.json by the rules of OpenAPI, and the job's
# event logs by docs/event_log.schema.json (test/page/schema_checks.js).
# Needs Debian's chromium, and node with npm, which installs playwright-core, axe-core, ajv and an
# OpenAPI validator into ${XDG_CACHE_HOME:-~/.cache}/muster:
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
node test/page/late_answers.js
node test/page/page_checks.js bazel-bin/launcher/muster bazel-bin/rendezvous/musterd "$(command -v chromium)" \
  "--keep-logs=$logs" "$@"
node test/page/schema_checks.js docs/observing/openapi.json docs/event_log.schema.json "$logs"/*
