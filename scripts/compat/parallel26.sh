#!/usr/bin/env bash
# Compares the gradients of muster-train's ways to split a model with those of the PyTorch of Debian
# 13 (python3-torch 2.6) on the same weights and text, in float64: tensor parallelism with
# DTensor's, --zero 3 with FSDP1, and a pipeline with torch.distributed.pipelining's GPipe. None may
# differ by more than 1e-6. Not part of scripts/test.sh: needs the folder of
# scripts/compat/torch26.sh, and root.
#
# usage: scripts/compat/parallel26.sh [FOLDER]      default: /var/tmp/muster-debian13
#
# MUSTER_TRAIN may name an existing muster-train.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=${1:-/var/tmp/muster-debian13}
[ "$(id -u)" = 0 ] || { echo "parallel26.sh: chroot needs root; run it as root" >&2; exit 2; }
[ -e "$root/.complete" ] || { echo "parallel26.sh: $root is missing; scripts/compat/torch26.sh makes it" >&2; exit 2; }

# Restarts itself with mounts of its own, which end with the script and do not affect others.
if [ $# -lt 2 ]; then
  binary=${MUSTER_TRAIN:-}
  if [ -z "$binary" ]; then
    bazel build //trainer:muster-train
    binary=$(bazel info bazel-bin 2>/dev/null)/trainer/muster-train
  fi
  exec unshare --mount --net scripts/compat/parallel26.sh "$root" "$binary"
fi
binary=$2
ip link set lo up
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/tmp"
files=$root/tmp/files
mkdir "$files"
cp scripts/compat/parallel26.py test/trainer/models/testdata/*.py "$root/tmp/"
# Eight windows, which make one step, and one to shift them by.
head -c 288 README.md >"$files/text"

# ranks COUNT COMMAND...: runs it as that many ranks.
ranks() {
  local count=$1 rank pids=() status=0
  shift
  for ((rank = 0; rank < count; ++rank)); do
    env RANK=$rank WORLD_SIZE="$count" LOCAL_RANK=$rank LOCAL_WORLD_SIZE="$count" MASTER_ADDR=127.0.0.1 \
      MASTER_PORT=29555 OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=lo USE_LIBUV=0 PYTHONWARNINGS=ignore "$@" >"$files/rank$rank.log" 2>&1 &
    pids+=($!)
  done
  for rank in "${!pids[@]}"; do wait "${pids[$rank]}" || status=$?; done
  return $status
}
# train NAME RANKS FLAGS...: one step from the initial parameters; with a learning rate of 1 it
# subtracts the gradient.
train() {
  local name=$1 count=$2
  shift 2
  ranks "$count" "$binary" --model gpt --layers 2 --heads 4 --width 32 --context 32 --dataset text \
    --data "$files/text" --test-data "$files/text" --batch-size 8 --max-steps 1 --no-eval --dtype float64 --threads 1 \
    --momentum 0 --lr 1 --checkpoint "$files/$name.pt" "$@" || { cat "$files"/rank*.log >&2; exit 1; }
}
# So small that nothing changes.
train init 1 --lr 1e-30
train alone 1
train tp 2 --mesh tp=2
train zero 2 --zero 3
train pp 2 --mesh pp=2 --pipeline-schedule gpipe --micro-batches 4
status=0
ranks 2 chroot "$root" python3 /tmp/parallel26.py /tmp/files || status=$?
cat "$files/rank0.log"
[ $status = 0 ] || cat "$files/rank1.log"
exit $status
