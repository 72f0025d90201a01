#!/usr/bin/env bash
# Runs a command in the Debian 13 of scripts/compat/torch26.sh, with everything that a training with
# its PyTorch needs.
#
# usage: scripts/bench/debian13.sh ROOT FOLDER COMMAND...
# FOLDER of this machine is /tmp/bench there. Has mounts of its own, which end with the command.
# Needs root.
set -euo pipefail
if [ "$1" != inside ]; then
  exec unshare --mount "$0" inside "$@"
fi
root=$2 folder=$3
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t tmpfs tmpfs "$root/tmp"
mkdir "$root/tmp/bench"
mount --bind "$folder" "$root/tmp/bench"
# This build of PyTorch lacks libuv.
exec chroot "$root" env -i PATH=/usr/bin:/bin HOME=/root LANG=C.UTF-8 PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1 \
  USE_LIBUV=0 OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" GLOO_SOCKET_IFNAME="${GLOO_SOCKET_IFNAME:-lo}" "${@:4}"
