#!/usr/bin/env bash
# Goal: the simulation of the launch tree detects mistakes.
#
# Method: the first argument is the simulation with the shipped FanOut, which must pass. Each other
# one is a mutant, the same with one deliberate mistake in fan_out.cc (mutants.bzl). Each must be
# caught by a check, or make FanOut abort, within the first seeds.
set -uo pipefail

seeds=24
hosts=400
"$1" $seeds $hosts || { echo "the simulation itself fails"; exit 1; }
shift
missed=0
for mutant in "$@"; do
  name=${mutant##*/mutant_}
  output=$("$mutant" $seeds $hosts 2>&1)
  status=$?
  if [[ $status -eq 1 && $output == *"caught by "* ]]; then
    echo "mutant $name: ${output##*$'\n'}"
  elif [[ $status -ge 128 ]]; then
    echo "mutant $name: caught by an abort"
  else
    echo "mutant $name: MISSED (status $status)"
    missed=1
  fi
done
exit $missed
