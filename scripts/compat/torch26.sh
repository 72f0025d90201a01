#!/usr/bin/env bash
# Runs the scripts of test/e2e/torch under Muster with the PyTorch of Debian 13 (python3-torch 2.6),
# in a folder with a Debian 13 of its own. Not part of scripts/test.sh: the folder takes about 3 GB
# and needs root.
#
# usage: scripts/compat/torch26.sh [FOLDER]      default: /var/tmp/muster-debian13; kept
#
# This build of PyTorch lacks libuv, but requests it as a client of the agent's store, so the
# workers serve theirs: --worker-store=worker, with USE_LIBUV=0 as under any launcher. Each script
# runs a second time with the agent's store and PyTorch told not to request libuv
# (no_libuv/sitecustomize.py), to cover its protocol, too, and a third time with that store behind a
# tunnel.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=${1:-/var/tmp/muster-debian13}
[ "$(id -u)" = 0 ] || { echo "torch26.sh: debootstrap and chroot need root; run it as root" >&2; exit 2; }
command -v debootstrap >/dev/null || { echo "torch26.sh: debootstrap is missing; apt-get install debootstrap" >&2; exit 2; }

unmount() {
  for place in dev/shm dev proc tmp; do
    if mountpoint -q "$root/$place"; then umount -l "$root/$place"; fi
  done
}
trap unmount EXIT
unmount

if [ ! -e "$root/.complete" ]; then
  rm -rf --one-file-system "$root"
  echo "torch26.sh: making a Debian 13 with python3-torch in $root (once, about 10 minutes)"
  debootstrap --variant=minbase --include=ca-certificates trixie "$root" >"$root.log" 2>&1 || {
    tail -5 "$root.log" >&2
    exit 1
  }
  cp /etc/apt/apt.conf.d/* "$root/etc/apt/apt.conf.d/" 2>/dev/null || true
  cp /etc/resolv.conf "$root/etc/" 2>/dev/null || true
  mount -t proc proc "$root/proc"
  chroot "$root" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
    python3-torch python3-numpy >>"$root.log" 2>&1 || {
    tail -5 "$root.log" >&2
    exit 1
  }
  umount "$root/proc"
  touch "$root/.complete"
fi

bazel build //launcher:muster
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t tmpfs tmpfs "$root/tmp"
mkdir -p "$root/opt/muster"
cp -rf bazel-bin/launcher/muster test/e2e/torch/*.py scripts/compat/no_libuv "$root/opt/muster/"

inside() { chroot "$root" env -i PATH=/usr/bin:/bin HOME=/root LANG=C.UTF-8 TP_SOCKET_IFNAME=lo GLOO_SOCKET_IFNAME=lo USE_LIBUV=0 "$@"; }
inside python3 -c 'import torch; print("torch", torch.__version__)'
failed=0
# run_pair SCRIPT WORKER_STORE PYTHONPATH: two agents with two workers each.
run_pair() {
  local port=$((20000 + RANDOM % 10000)) rc=0 one arguments=()
  if [ "$1" = ddp_survival.py ]; then arguments=("/tmp/store-of-$2.pt" 20); fi
  set -- "$1" "$2" PYTHONPATH="$3" /opt/muster/muster run --nnodes=2 --nproc-per-node=2 --max-restarts=1 \
    --worker-store="$2" --rdzv-endpoint=127.0.0.1:$port "/opt/muster/$1" "${arguments[@]}"
  inside "${@:3}" >"$root/tmp/one.log" 2>&1 &
  one=$!
  inside "${@:3}" >"$root/tmp/two.log" 2>&1 || rc=$?
  wait $one || rc=$?
  if [ $rc = 0 ]; then
    echo "ok   $1, store of the $2"
  else
    failed=1
    echo "FAIL $1, store of the $2 (exit code $rc)"
    cat "$root/tmp/one.log" "$root/tmp/two.log"
  fi
}
for script in "$root"/opt/muster/*.py; do
  name=$(basename "$script")
  run_pair "$name" worker ""
  run_pair "$name" agent /opt/muster/no_libuv
  run_pair "$name" tunnel /opt/muster/no_libuv
done
exit $failed
