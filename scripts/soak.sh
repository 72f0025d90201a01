#!/usr/bin/env bash
# The long checks, beyond what each test run can afford:
#   scripts/soak.sh [--sim-hours=10000] [--histories=500] [--no-mutants]
# Simulated clusters (test/rendezvous/cluster): so many hours of chaos, an hour for each seed, on all
# processors. Exits with 0 if nothing was found; else the output names the seed, with which the run
# can be seen event by event (cluster_simulation --first-seed=SEED --seeds=1 --trace, and
# --daemons=several for those of daemons that take turns).
# Histories of the store (test/linearizability): so many, from real daemons under faults, each checked
# for linearizability; 0: none. Before all, the mutants of the simulated code must each be caught.
# The histories take some six minutes on two processors. One that fails is shown, and is left in the outputs of the test.
set -euo pipefail
cd "$(dirname "$0")/.."

sim_hours=10000
histories=500
mutants=1
first_seed=1000000  # beyond those of the tests
for flag in "$@"; do
  case $flag in
    --sim-hours=*) sim_hours=${flag#*=} ;;
    --histories=*) histories=${flag#*=} ;;
    --no-mutants) mutants=0 ;;
    *)
      echo "soak: unknown flag $flag" >&2
      exit 2
      ;;
  esac
done

# ---------------------------------------------------------------------------- simulated clusters
soak_simulation() {
  echo "soak: simulating $sim_hours cluster hours"
  bazel build --config=soak //test/rendezvous/cluster:cluster_simulation
  local binary logs parts each pids=() failed=0
  # A fifth of its time is malloc's.
  local -x GLIBC_TUNABLES=glibc.malloc.tcache_count=2000:glibc.malloc.tcache_max=8192
  binary=$(bazel info --config=soak bazel-bin)/test/rendezvous/cluster/cluster_simulation
  logs=$(mktemp -d "${TMPDIR:-/tmp}/muster-soak.XXXXXX")
  parts=$(nproc)
  each=$(((sim_hours + parts - 1) / parts))
  for ((part = 0; part < parts; part++)); do
    # One hour in six is that of daemons that take turns.
    {
      "$binary" --first-seed=$((first_seed + part * each)) --seeds=$((each - each / 6)) &&
        "$binary" --daemons=several --first-seed=$((first_seed + part * each)) --seeds=$((each / 6))
    } > "$logs/$part" &
    pids+=($!)
  done
  for ((part = 0; part < parts; part++)); do
    wait "${pids[$part]}" || failed=1
    grep "simulated minutes\|caught by" "$logs/$part" || true
  done
  if ((failed)); then
    echo "soak: the simulation failed; its output is in $logs" >&2
    return 1
  fi
  rm -r "$logs"
}

# ------------------------------------------------------------------------ histories of the store
soak_histories() {
  ((histories > 0)) || return 0
  echo "soak: recording and checking $histories histories"
  bazel test --test_env=MUSTER_HISTORIES="$histories" --test_timeout=36000 --nocache_test_results \
    //test/linearizability:linearizability_test
}

# ------------------------------------------------------------------------------------- mutants
# The simulation with one mistake each in the code that it simulates: says which check caught which.
soak_mutants() {
  ((mutants)) || return 0
  echo "soak: mutants"
  bazel test --test_output=all --nocache_test_results //test/rendezvous/cluster:all_mutants_test
}

soak_mutants
soak_simulation
soak_histories
