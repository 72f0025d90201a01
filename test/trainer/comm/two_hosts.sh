#!/bin/sh
# Four ranks on two hosts of two: this shell's network namespace is one host, and a second namespace at the other end
# of a cable (veth) is the other. To be run by `unshare --map-root-user --net`, with which all of it disappears.
#
# usage: two_hosts.sh PROGRAM ARGUMENTS...
set -eu

ip link set lo up
unshare --net sleep 10000 &
second=$!
trap 'kill $second' EXIT
# Its namespace is there once it is another than ours.
while [ "$(readlink /proc/$second/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
on_second="nsenter --target $second --net"

ip link add to_second type veth peer name to_first netns $second
ip addr add 10.99.0.1/24 dev to_second
ip link set to_second up
$on_second ip link set lo up
$on_second ip addr add 10.99.0.2/24 dev to_first
$on_second ip link set to_first up

export WORLD_SIZE=4 LOCAL_WORLD_SIZE=2 MASTER_ADDR=10.99.0.1 MASTER_PORT=29400 OMP_NUM_THREADS=1 GLOG_minloglevel=2
RANK=0 LOCAL_RANK=0 "$@" &
zero=$!
RANK=1 LOCAL_RANK=1 "$@" &
one=$!
RANK=2 LOCAL_RANK=0 $on_second "$@" &
two=$!
RANK=3 LOCAL_RANK=1 $on_second "$@" &
three=$!
failed=0
for rank in $zero $one $two $three; do wait $rank || failed=1; done
exit $failed
