#!/usr/bin/env bash
# Checks a daemon's metrics (docs/metrics.md) with promtool:
#   - `check metrics` on the answer of a musterd whose job has failed and restarted;
#   - `check rules` and `test rules` on docs/observing/alerts.yml and its cases;
#   - `check rules` on the expressions of docs/observing/grafana.json, each as a recording rule.
#   scripts/metrics_checks.sh [BIN]     BIN: a folder with muster and musterd; without it they are built
# Needs promtool of Debian's prometheus: apt-get install --no-install-recommends prometheus
# Not part of scripts/test.sh, whose tests compare names and labels without it. Everything stays on
# loopback.
set -euo pipefail
cd "$(dirname "$0")/.."
for tool in promtool curl python3; do
  command -v "$tool" >/dev/null || {
    echo "metrics_checks: $tool is missing; the head of $0 says what to install" >&2
    exit 2
  }
done
if [ $# -gt 0 ]; then
  muster=$1/muster musterd=$1/musterd
else
  bazel build //launcher:muster //rendezvous:musterd
  muster=bazel-bin/launcher/muster musterd=bazel-bin/rendezvous/musterd
fi
work=$(mktemp -d)
daemon= agent=
end() {
  [ -z "$agent" ] || kill "$agent" 2>/dev/null || true
  [ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
  wait
  rm -r "$work"
}
trap end EXIT

# await SECONDS COMMAND...: until the command succeeds.
await() {
  local until=$((SECONDS + $1))
  shift
  until "$@"; do
    [ $SECONDS -lt $until ] || {
      echo "metrics_checks: never: $*" >&2
      cat "$work"/*.log >&2
      exit 1
    }
    sleep 0.1
  done
}

echo "== alert rules"
promtool check rules docs/observing/alerts.yml
promtool test rules docs/observing/alerts_test.yml

echo "== the dashboard's expressions"
python3 - docs/observing/grafana.json >"$work/dashboard.yml" <<'PYTHON'
import json, sys
print("groups: [{name: dashboard, rules: [")
number = 0
for panel in json.load(open(sys.argv[1]))["panels"]:
    for target in panel.get("targets", []):
        number += 1
        # Grafana's variables. Names in `name=~"$variable"` are text to Prometheus.
        expression = target["expr"].replace("$__rate_interval", "5m").replace("$__range", "6h")
        print(f'{{record: "dashboard:expression:{number}", expr: {json.dumps(expression)}}},')
print("]}]")
PYTHON
promtool check rules "$work/dashboard.yml"

echo "== metrics of a daemon"
"$musterd" --insecure --listen=127.0.0.1:0 --http=127.0.0.1:0 --state-dir="$work/state" 2>"$work/musterd.log" &
daemon=$!
await 20 grep -q 'listening on' "$work/musterd.log"
# The line ends with the address, and a log in a terminal may be coloured.
http=$(grep -o 'http://127\.0\.0\.1:[0-9]*/' "$work/musterd.log")
port=$(grep -o 'listening on 127\.0\.0\.1:[0-9]*' "$work/musterd.log" | grep -o '[0-9]*$')
"$muster" run --insecure --rdzv-endpoint="127.0.0.1:$port" --rdzv-id=checked --rdzv-conf=is_host=0 --nnodes=1 --nproc-per-node=2 \
  --max-restarts=1 --no-python sh -c 'test $RANK$TORCHELASTIC_RESTART_COUNT != 10 || exit 3; exec sleep 600' 2>"$work/muster.log" &
agent=$!
shows() { curl -sf "${http}metrics" >"$work/metrics" && grep -q "$1" "$work/metrics"; }
await 30 shows '^muster_recovery_seconds_count 1$'
promtool check metrics <"$work/metrics"
echo "$(grep -c '^# TYPE' "$work/metrics") metrics, $(grep -vc '^#' "$work/metrics") time series with one job: clean"
