#!/usr/bin/env bash
# Long checks, beyond what each test run can afford:
#   scripts/soak.sh [--sim-hours=10000] [--histories=500] [--no-mutants]
# Simulated clusters (test/rendezvous/cluster): this many hours of chaos, one hour per seed, on all
# CPUs. Exits with 0 if nothing was found; else the output names the seed, which shows the run event
# by event (cluster_simulation --first-seed=SEED --seeds=1 --trace, and --daemons=several for leader
# changes). Histories of the store (test/linearizability): this many, from real daemons under
# faults, each checked for linearizability; 0: none. First, each mutant of the simulated code must
# be caught. The histories take some six minutes on two CPUs. One that fails is shown, and kept in
# the test's outputs.
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
  # malloc takes a fifth of its time.
  local -x GLIBC_TUNABLES=glibc.malloc.tcache_count=2000:glibc.malloc.tcache_max=8192
  binary=$(bazel info --config=soak bazel-bin)/test/rendezvous/cluster/cluster_simulation
  logs=$(mktemp -d "${TMPDIR:-/tmp}/muster-soak.XXXXXX")
  parts=$(nproc)
  each=$(((sim_hours + parts - 1) / parts))
  for ((part = 0; part < parts; part++)); do
    # Every sixth hour has daemons that take turns as leader.
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
# The simulation, with one mistake in each run: prints which check caught it.
soak_mutants() {
  ((mutants)) || return 0
  echo "soak: mutants"
  bazel test --test_output=all --nocache_test_results //test/rendezvous/cluster:all_mutants_test
}

soak_mutants
soak_simulation
soak_histories
