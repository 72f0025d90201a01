#!/bin/sh
# Two ranks on a host with little shared memory. To be run by `unshare --map-root-user --net --mount`, with which all of
# it disappears.
#
# usage: small_shm.sh SIZE PROGRAM ARGUMENTS...
set -eu

ip link set lo up
mount -t tmpfs -o "size=$1" none /dev/shm
shift
export WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29400 OMP_NUM_THREADS=1 GLOG_minloglevel=2
RANK=0 LOCAL_RANK=0 "$@" &
zero=$!
RANK=1 LOCAL_RANK=1 "$@" &
one=$!
status=0
wait $zero || status=$?
wait $one || status=$?
exit $status
