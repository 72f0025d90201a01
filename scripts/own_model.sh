#!/usr/bin/env bash
# A user's own program (examples/own_model), as built outside of this tree: builds and installs the
# library with CMake, builds the program against it, trains it on two nodes, kills both, and
# continues with one, which must end where an undisturbed run ends. Then a program with batches,
# batch normalization, optimizer and schedule of its own (examples/own_training), on one rank and on
# two. Prints a line per case and how many passed; the last line is
#   own_model: N passed, M failed
# The library is compiled a second time, and has to be: its CMake build is what users install, and nothing else tries it.
# Exits with 0 if none failed. Build results are kept in .cache/own_model. MUSTER may name an
# existing muster.
set -uo pipefail
cd "$(dirname "$0")/.."

cache=$PWD/.cache/own_model
work=$(mktemp -d)
export XDG_CONFIG_HOME=$work/config # where the nodes' token is made
nodes=()
clean_up() {
  [ ${#nodes[@]} -eq 0 ] || kill -KILL "${nodes[@]}" 2>/dev/null
  rm -rf "$work"
}
trap clean_up EXIT

passed=0
failed=0
try() { # WHAT COMMAND...
  local what=$1
  shift
  if "$@" >"$work/log" 2>&1; then
    passed=$((passed + 1))
    echo "own_model: ok: $what"
  else
    failed=$((failed + 1))
    echo "own_model: FAILED: $what"
    tail -n 40 "$work/log"
  fi
}
finish() {
  echo "own_model: $passed passed, $failed failed"
  [ $failed -eq 0 ]
  exit
}

build_library() {
  # Built as a user would, except for less optimization, which saves half of the time.
  cmake -S trainer -B "$cache/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O1 &&
    cmake --build "$cache/build" -j "$(nproc)" &&
    cmake --install "$cache/build" --prefix "$cache/installed"
}
build_program() { # NAME
  cmake -S "examples/$1" -B "$cache/$1" -DCMAKE_PREFIX_PATH="$cache/installed" && cmake --build "$cache/$1"
}
try "the library is built and installed" build_library
try "the program is built against what was installed" build_program own_model
try "so is the other one" build_program own_training
[ $failed -eq 0 ] || finish

muster=${MUSTER:-$(bazel info bazel-bin 2>/dev/null)/launcher/muster}
# In float64 the order in which gradients are added does not matter.
flags=(--batch-size=64 --epochs=40 --algorithm=adamw --lr=0.01 --dtype=float64 --checkpoint-every=100)

whole_run() {
  "$cache/own_model/own_model" "${flags[@]}" --loss-log="$work/whole" --checkpoint="$work/whole.pt"
}
# Starts a node with checkpoints of its own, as on a host without a shared file system.
start_node() { # RANK
  setsid "$muster" run --nnodes=2 --nproc-per-node=1 --node-rank="$1" --rdzv-endpoint="127.0.0.1:$port" \
    --rdzv-id=own_model --log-dir="$work/logs$1" \
    "$cache/own_model/own_model" "${flags[@]}" --checkpoint-dir="$work/node$1" >"$work/node$1.log" 2>&1 &
  nodes+=($!)
}
# Waits until the directory has a checkpoint, which its file `latest` then names. Stops waiting if a
# node exits before.
await_checkpoint() { # DIRECTORY
  until grep -qs '^step-' "$1/latest"; do
    kill -0 "${nodes[@]}" 2>/dev/null || { cat "$work"/node*.log; return 1; }
    sleep 0.02
  done
}
killed_run() {
  rm -rf "$work"/node0 "$work"/node1
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  start_node 0
  start_node 1
  # Not for a specific checkpoint: on a busy machine it could be gone again before the check.
  await_checkpoint "$work/node0" && await_checkpoint "$work/node1" || return 1
  kill -KILL "${nodes[@]}"
  wait "${nodes[@]}" 2>/dev/null
  nodes=()
  # Each agent's guard kills what the agent had started.
  while pgrep -f -- "--checkpoint-dir=$work/node" >/dev/null; do sleep 0.02; done
  ! grep -q 'world size' "$work/node0.log" || { echo "it had ended before it was killed"; return 1; }
}
resumed_run() {
  "$muster" run --standalone --nproc-per-node=1 --log-dir="$work/logs" "$cache/own_model/own_model" "${flags[@]}" \
    --checkpoint-dir="$work/node0" --loss-log="$work/resumed" --checkpoint="$work/resumed.pt"
}
# The losses of the resumed run, which are fewer than all.
same_losses() {
  python3 - "$work/whole" "$work/resumed" <<'PYTHON'
import sys
whole, resumed = (dict(line.split()[:2] for line in open(path)) for path in sys.argv[1:])
assert len(whole) == 2560 and 0 < len(resumed) < 2560 and list(resumed)[-1] == list(whole)[-1], (len(whole), len(resumed))
apart = max(abs(float(resumed[step]) / float(whole[step]) - 1) for step in resumed)
print(f"{len(resumed)} steps after the kill, at most {apart:.1e} apart")
assert apart < 1e-6
PYTHON
}
measured_alike() {
  "$cache/own_model/own_model" eval --checkpoint="$work/resumed.pt" | grep '^test loss' >"$work/resumed.loss" &&
    "$cache/own_model/own_model" eval --checkpoint="$work/whole.pt" | grep '^test loss' >"$work/whole.loss" &&
    cat "$work"/*.loss
}
try "one process trains" whole_run
try "two nodes train and are killed" killed_run
try "one node goes on" resumed_run
try "the losses are those of a run that was never killed" same_losses
try "both models are measured" measured_alike

# 4000 samples in batches of 91, of which two ranks get 45 and 46, and finally 87.
train_on() { # RANKS
  "$muster" run --standalone --nproc-per-node="$1" --log-dir="$work/logs" "$cache/own_training/own_training" --sync-bn \
    --batch-size=91 --epochs=3 --dtype=float64 --loss-log="$work/on$1" --checkpoint="$work/on$1.pt"
}
same_on_both() {
  python3 - "$work/on1" "$work/on2" <<'PYTHON'
import sys
one, two = ([float(line.split()[1]) for line in open(path)] for path in sys.argv[1:])
apart = max(abs(a - b) / a for a, b in zip(one, two))
print(f"{len(one)} steps, at most {apart:.1e} apart, from {one[0]} to {one[-1]}")
assert len(one) == len(two) == 132 and apart < 1e-6 and one[-1] < one[0] / 4
PYTHON
}
try "the other program trains on one rank" train_on 1
try "and on two" train_on 2
try "the losses are the same" same_on_both
finish
