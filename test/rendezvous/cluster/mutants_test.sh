#!/usr/bin/env bash
# Goal: the cluster simulation finds what is wrong.
#
# Method: each argument is a mutant, a simulation in which one mistake was made on purpose: a binary
# (mutants.bzl), or --mutant=NAME for one of cluster_main.cc's. Each must be caught by some check
# within the first seeds. A mutant that makes the core abort is caught as well. --daemons=N and
# --seeds=N before them are for all.
set -uo pipefail

seeds=120
minutes=15
flags=(--seeds=$seeds --minutes=$minutes)
while [[ $1 == --* ]]; do
  flags+=("$1")
  shift
done
simulation=$1
shift
missed=0
for mutant in "$@"; do
  case $mutant in
    --mutant=*) command=("$simulation" "$mutant") ;;
    *) command=("$mutant") ;;
  esac
  name=${mutant##*=}
  name=${name##*/mutant_}
  output=$("${command[@]}" "${flags[@]}" 2>&1)
  status=$?
  caught=$(grep -ao "caught by .*" <<< "$output" | tail -1)
  if [[ $status -eq 1 && -n $caught ]]; then
    echo "mutant $name: $caught"
  elif [[ $status -ge 128 ]]; then
    echo "mutant $name: caught by an abort of the core"
  else
    echo "mutant $name: MISSED (status $status)"
    missed=1
  fi
done
exit $missed
