#!/bin/sh
# Runs a command in a network namespace of its own, where a daemon that listens on all addresses is
# reached from 200 addresses: connections to 127.1.N.2 come from 127.1.N.1. Needs root.
#
# usage: many_hosts.sh COMMAND [ARGUMENT]...
exec unshare --net sh -ec '
  ip link set lo up
  for n in $(seq 1 200); do
    echo "addr add 127.1.$n.1/32 dev lo"
    echo "route replace local 127.1.$n.2/32 dev lo src 127.1.$n.1 table local"
  done | ip -batch -
  exec "$@"' many_hosts "$@"
