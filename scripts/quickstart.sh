#!/usr/bin/env bash
# From a fresh Debian 12 to a distributed training run: sets up, builds, and trains a small network
# on Fashion-MNIST with two agents ("nodes") on this machine, two workers each. Logs and the
# checkpoint go to muster-runs/.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh --no-tests
echo "quickstart: building muster, musterd and muster-train"
bazel build --config=opt //launcher:muster //rendezvous:musterd //trainer:muster-train
bin=$(bazel info --config=opt bazel-bin 2>/dev/null)

out=$PWD/muster-runs/quickstart-$(date +%Y%m%d-%H%M%S)
mkdir -p "$out"

# The first agent hosts the rendezvous on a currently free port, the second finds it.
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
node() {
  "$bin/launcher/muster" run --nnodes=2 --nproc-per-node=2 --node-rank="$1" \
    --rdzv-endpoint="127.0.0.1:$port" --rdzv-id=quickstart --log-dir="$out/logs" --tee=3 --log-level=info \
    "$bin/trainer/muster-train" --epochs=1 --checkpoint="$out/muster-train.pt"
}

echo "quickstart: two agents, two workers each, meeting at 127.0.0.1:$port"
node 1 >"$out/node1.log" 2>&1 &
second=$!
status=0
node 0 || status=$?
wait $second || status=$?
if [ $status -ne 0 ]; then
  echo "quickstart: the run failed with exit code $status; the second node says:" >&2
  tail -n 20 "$out/node1.log" >&2
  exit $status
fi
echo
echo "quickstart: done. Checkpoint: $out/muster-train.pt"
echo "quickstart: logs: $out/logs (one folder for each node and rank), second node's terminal: $out/node1.log"
