#!/usr/bin/env bash
# A program of one's own (examples/own_model), as somebody outside of this tree makes it: builds and installs the
# library by CMake, builds the program against it, trains it on two nodes, kills both, and goes on with one, which has
# to end where a run that was never killed ends. Prints a line for each of these cases and how many passed; the last
# line is
#   own_model: N passed, M failed
# Exits with 0 if none failed. Build results are kept in .cache/own_model. MUSTER may name a muster that is built already.
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
  # Checked as a user would build it but for the optimization, which is half of the time.
  cmake -S trainer -B "$cache/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O1 &&
    cmake --build "$cache/build" -j "$(nproc)" &&
    cmake --install "$cache/build" --prefix "$cache/installed"
}
build_program() {
  cmake -S examples/own_model -B "$cache/program" -DCMAKE_PREFIX_PATH="$cache/installed" &&
    cmake --build "$cache/program"
}
try "the library is built and installed" build_library
try "the program is built against what was installed" build_program
[ $failed -eq 0 ] || finish

muster=${MUSTER:-$(bazel info bazel-bin 2>/dev/null)/launcher/muster}
# In float64 it does not matter in which order gradients are added up.
flags=(--batch-size=64 --epochs=40 --algorithm=adamw --lr=0.01 --dtype=float64 --checkpoint-every=100)

whole_run() {
  "$cache/program/own_model" "${flags[@]}" --loss-log="$work/whole" --checkpoint="$work/whole.pt"
}
# Starts a node whose checkpoints are its own, as on a host without a common file system.
start_node() { # RANK
  setsid "$muster" run --nnodes=2 --nproc-per-node=1 --node-rank="$1" --rdzv-endpoint="127.0.0.1:$port" \
    --rdzv-id=own_model --log-dir="$work/logs$1" \
    "$cache/program/own_model" "${flags[@]}" --checkpoint-dir="$work/node$1" >"$work/node$1.log" 2>&1 &
  nodes+=($!)
}
# Waits until a checkpoint is in the directory; its file `latest` names none before. A node that ends first would be
# waited for in vain.
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
  # Not a certain checkpoint: on a busy machine it would be gone again before it was looked for.
  await_checkpoint "$work/node0" && await_checkpoint "$work/node1" || return 1
  kill -KILL "${nodes[@]}"
  wait "${nodes[@]}" 2>/dev/null
  nodes=()
  # Each agent's guard ends what the agent had started.
  while pgrep -f -- "--checkpoint-dir=$work/node" >/dev/null; do sleep 0.02; done
  ! grep -q 'world size' "$work/node0.log" || { echo "it had ended before it was killed"; return 1; }
}
resumed_run() {
  "$muster" run --standalone --nproc-per-node=1 --log-dir="$work/logs" "$cache/program/own_model" "${flags[@]}" \
    --checkpoint-dir="$work/node0" --loss-log="$work/resumed" --checkpoint="$work/resumed.pt"
}
# The losses of all steps that the resumed run made, fewer than all.
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
  "$cache/program/own_model" eval --checkpoint="$work/resumed.pt" | grep '^test loss' >"$work/resumed.loss" &&
    "$cache/program/own_model" eval --checkpoint="$work/whole.pt" | grep '^test loss' >"$work/whole.loss" &&
    cat "$work"/*.loss
}
try "one process trains" whole_run
try "two nodes train and are killed" killed_run
try "one node goes on" resumed_run
try "the losses are those of a run that was never killed" same_losses
try "both models are measured" measured_alike
finish
