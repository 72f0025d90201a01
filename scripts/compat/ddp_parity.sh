#!/usr/bin/env bash
# Trains muster-train's convnet for an epoch of Fashion-MNIST with 2 ranks, once with muster-train
# and once with Python's DistributedDataParallel, and compares every weight: the difference must be
# 0.0. With SGD, then AdamW, and both again with sharded optimizer state (--zero 1,
# ZeroRedundancyOptimizer). Takes several minutes.
#
# usage: scripts/compat/ddp_parity.sh [STEPS]      default: the whole epoch
#
# Needs Debian's python3-torch and dataset-fashion-mnist; MUSTER_TRAIN may name an existing
# muster-train.
set -euo pipefail
cd "$(dirname "$0")/../.."
steps=${1:-0}
data=/usr/share/datasets/fashion-mnist
binary=${MUSTER_TRAIN:-}
if [ -z "$binary" ]; then
  bazel build --config=opt //trainer:muster-train
  binary=$(bazel info --config=opt bazel-bin 2>/dev/null)/trainer/muster-train
fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# ranks COMMAND...: runs it as 2 ranks that meet at a port that was free just before.
ranks() {
  local port rank pids=() status=0
  port=$(/usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  for rank in 0 1; do
    env RANK=$rank WORLD_SIZE=2 LOCAL_RANK=$rank LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT="$port" \
      OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=lo "$@" >"$out/rank$rank.log" 2>&1 &
    pids+=($!)
  done
  for rank in 0 1; do wait "${pids[$rank]}" || status=$?; done
  [ $status -eq 0 ] || cat "$out"/rank*.log >&2
  return $status
}

script=test/trainer/app/testdata/ddp_parity.py
failed=0
# parity FLAG...: trains both ways with the flags, which both accept, and compares.
parity() {
  local flags=(--data "$data" --max-steps "$steps" --batch-size 128 --seed 0 "$@")
  echo "$*"
  time ranks "$binary" --comm=gloo --optimizer=reference --no-eval "${flags[@]}" --checkpoint "$out/muster.pt"
  time ranks /usr/bin/python3 $script train "${flags[@]}" --checkpoint "$out/python.pt"
  /usr/bin/python3 $script compare "$out/muster.pt" "$out/python.pt" || failed=1
}
parity --algorithm sgd --lr 0.02 --momentum 0.9
parity --algorithm adamw --lr 0.001 --weight-decay 0.01
# The same with sharded optimizer state: ZeroRedundancyOptimizer.
parity --algorithm sgd --lr 0.02 --momentum 0.9 --zero 1
parity --algorithm adamw --lr 0.001 --weight-decay 0.01 --zero 1
exit $failed
