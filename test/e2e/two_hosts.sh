#!/bin/sh
# Two hosts in one machine: this shell's network namespace is one, and a second namespace at the
# other end of a cable (veth) is the other. Run it with `unshare --map-root-user --net`, with which
# all of it disappears.
#
# usage: two_hosts.sh MUSTER PROGRAM endpoint|static [FLAG...]
# Runs one agent on each host, with PROGRAM as the worker; they meet at --rdzv-endpoint, or at
# --master-addr with node ranks. The second host's output comes after the first's.
set -eu
muster=$1
program=$2
how=$3
shift 3

ip link set lo up
unshare --net sleep 10000 &
second=$!
trap 'kill $second' EXIT
# Its namespace exists once it differs from ours.
while [ "$(readlink /proc/$second/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
on_second="nsenter --target $second --net"

ip link add to_second type veth peer name to_first netns $second
ip addr add 10.99.0.1/24 dev to_second
ip link set to_second up
$on_second ip link set lo up
$on_second ip addr add 10.99.0.2/24 dev to_first
$on_second ip link set to_first up

# As a user does on one host, to copy the token to the other.
"$muster" token new >"$TMPDIR/token_file"

flags() {
  if [ "$how" = static ]; then
    echo --nnodes=2 --master-addr=10.99.0.1 --master-port=29400 --node-rank="$1"
  else
    echo --nnodes=2 --rdzv-endpoint=10.99.0.1:29400
  fi
}
"$muster" run $(flags 0) "$@" --no-python "$program" &
first=$!
$on_second "$muster" run $(flags 1) "$@" --no-python "$program" >"$TMPDIR/second.out"
wait $first
cat "$TMPDIR/second.out"
