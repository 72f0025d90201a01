#!/bin/sh
# The bytes that ranks send over Gloo in a step, as the kernel counts them on the loopback of a network namespace that
# is this run's own. Usage: kernel_bytes.sh RANKS METRICS FLAGS...; prints the bytes of 20 steps of all ranks together,
# and leaves METRICS.4 and METRICS.24 of the two runs whose difference they are.
set -eu
ranks=$1 metrics=$2
shift 2
ip link set lo up
export GLOO_SOCKET_IFNAME=lo OMP_NUM_THREADS=1

sent() {
  sed -n 's/^ *lo: *\([0-9]*\) .*/\1/p' /proc/net/dev
}

# The bytes of a run of $1 steps.
train() {
  before=$(sent)
  steps=$1
  shift
  launcher/muster run --standalone --nproc-per-node "$ranks" --no-python trainer/muster-train --comm gloo \
    --max-steps "$steps" --metrics "$metrics.$steps" "$@" >&2
  echo $(($(sent) - before))
}

# What ranks say as they meet and part is in both.
few=$(train 4 "$@")
many=$(train 24 "$@")
echo $((many - few))
