#!/usr/bin/env bash
# Builds muster-train with trainer/CMakeLists.txt against the LibTorch of Debian 13 (2.6), in the
# folder of scripts/compat/torch26.sh, and trains with it. Not part of scripts/test.sh: needs that
# folder, and root.
#
# usage: scripts/compat/trainer26.sh [FOLDER [build]]      default: /var/tmp/muster-debian13
#
# With `build` it only builds, into FOLDER/opt/trainer26/build, for scripts/bench.sh parallel.
# Packages and build are kept in the folder; the first run compiles a hundred files. Two ranks train
# over Gloo and over shared memory and must have the same losses; a rank is killed, and the resumed
# training must end as if it had not been; Python's DistributedDataParallel must reach the same
# weights, with SGD and with AdamW.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=${1:-/var/tmp/muster-debian13}
[ "$(id -u)" = 0 ] || { echo "trainer26.sh: chroot needs root; run it as root" >&2; exit 2; }
[ -e "$root/.complete" ] || { echo "trainer26.sh: $root is missing; scripts/compat/torch26.sh makes it" >&2; exit 2; }
place=/opt/trainer26 # inside the folder
packages="libtorch-dev libgloo-dev g++ cmake ninja-build libabsl-dev libcli11-dev nlohmann-json3-dev zlib1g-dev
  libdeflate-dev libcsv-dev libpng-dev libturbojpeg0-dev libopenblas0-pthread dataset-fashion-mnist"
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 "$@"; }

case ${2:-start} in
  start | build)
    mkdir -p "$root$place/source"
    # shellcheck disable=SC2086 # the packages are words
    if ! inside dpkg -s $packages >/dev/null 2>&1; then
      echo "trainer26.sh: installing what a build needs in $root (once)"
      unshare --mount scripts/compat/trainer26.sh "$root" install >>"$root.log" 2>&1 || {
        tail -5 "$root.log" >&2
        exit 1
      }
    fi
    # Restarts itself with mounts, processes and a network of its own. They end with the script, and
    # only loopback can be reached.
    exec unshare --mount --net --pid --fork --kill-child scripts/compat/trainer26.sh "$root" check "${2-}"
    ;;
  install)
    mount -t proc proc "$root/proc"
    inside apt-get update -q
    # shellcheck disable=SC2086
    inside DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $packages
    exit
    ;;
esac

ip link set lo up
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t tmpfs tmpfs "$root/tmp"
mount --bind . "$root$place/source"
mount -o remount,bind,ro "$root$place/source"

inside python3 -c 'import torch; print("torch", torch.__version__)'
{
  inside cmake -S $place/source/trainer -B $place/build -G Ninja &&
    inside cmake --build $place/build -j 2 -- -k 0
} >"$root/tmp/build.log" 2>&1 || {
  echo "FAIL trainer/CMakeLists.txt"
  grep -E -A 4 'error:|CMake Error' "$root/tmp/build.log" || tail -20 "$root/tmp/build.log"
  exit 1
}
echo "ok   trainer/CMakeLists.txt builds muster-train ($(grep -c 'warning:' "$root/tmp/build.log" || true) warnings)"
if [ "${3-}" = build ]; then exit; fi

cp test/trainer/app/testdata/ddp_parity.py "$root/tmp/"
# pair.py KILL_AT COMMAND...: runs the command as two ranks; kills the second once it has done step
# KILL_AT, unless that is 0. Exits with 0 if the ranks ended as they should: well, or with an error
# of the remaining one.
cat >"$root/tmp/pair.py" <<'PYTHON'
import os, socket, subprocess, sys

kill_at, command = int(sys.argv[1]), sys.argv[2:]
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
beats = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
beats.bind("/tmp/beats.%d" % port)
beats.settimeout(120)
ranks = []
for rank in 0, 1:
    env = dict(os.environ, RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE="2",
               MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo", USE_LIBUV="0",
               OMP_NUM_THREADS="1", MUSTER_BEAT_SOCKET="/tmp/beats.%d" % port if kill_at else "")
    ranks.append(subprocess.Popen(command, env=env))
while kill_at:
    beat = beats.recv(100).split()
    if beat[:2] == [b"beat", b"1"] and int(beat[2]) >= kill_at:
        ranks[1].kill()
        break
codes = [rank.wait(300) for rank in ranks]
print("exit codes", codes)
sys.exit(codes != ([1, -9] if kill_at else [0, 0]))
PYTHON

failed=0
: >"$root/tmp/difference"
# verdict WHAT RC LOG...: prints whether it went well, and the logs if not.
verdict() {
  if [ "$2" = 0 ]; then
    echo "ok   $1"
  else
    failed=1
    echo "FAIL $1"
    tail -n 12 "${@:3}"
  fi
  : >"$root/tmp/difference"
}
# pair NAME KILL_AT COMMAND...: as two ranks; their output goes to NAME.log.
pair() { inside python3 /tmp/pair.py "${@:2}" >>"$root/tmp/$1.log" 2>&1; }
# train NAME KILL_AT FLAGS...: two ranks of muster-train; losses go to NAME.losses and weights to
# NAME.pt.
train() {
  pair "$1" "$2" $place/build/muster-train --dataset=generated --no-eval --seed=3 --epochs=8 --max-steps=120 \
    --loss-log="/tmp/$1.losses" --checkpoint="/tmp/$1.pt" "${@:3}"
}
# same_losses ONE OTHER: whether both have the same loss for each of the steps.
same_losses() {
  [ "$(wc -l <"$root/tmp/$1.losses")" = 120 ] &&
    diff "$root/tmp/$1.losses" "$root/tmp/$2.losses" | head -5 >"$root/tmp/difference" && [ ! -s "$root/tmp/difference" ]
}
# same_weights ONE OTHER: whether PyTorch finds the same bits in both.
same_weights() {
  inside python3 /tmp/ddp_parity.py compare "/tmp/$1.pt" "/tmp/$2.pt" >"$root/tmp/difference" 2>&1
}

rc=0
{ train gloo 0 --comm=gloo && train shm 0 --comm=shm && same_losses gloo shm; } || rc=1
verdict "shared memory has the losses of Gloo (120 steps, 2 ranks)" $rc "$root"/tmp/{gloo.log,shm.log,difference}

rc=0
{
  train resumed 45 --comm=gloo --checkpoint-dir=/tmp/resumed --checkpoint-every=20 &&
    train resumed 0 --comm=gloo --checkpoint-dir=/tmp/resumed --checkpoint-every=20 &&
    grep -q "resuming from" "$root/tmp/resumed.log" &&
    same_losses gloo resumed && same_weights gloo resumed
} || rc=1
verdict "a rank killed after step 45, and the training gone on: losses and weights as without" $rc \
  "$root"/tmp/{resumed.log,difference}

# gpt NAME COMMAND...: a GPT in float64 with that command; losses go to NAME.losses.
gpt() {
  "${@:2}" $place/build/muster-train --model gpt --data $place/source/README.md --layers 2 --heads 4 --width 64 \
    --context 32 --batch-size 8 --dtype float64 --max-steps 20 --no-eval --algorithm adamw --lr 0.001 --threads 1 \
    --loss-log "/tmp/$1.losses" "${shared[@]}" >>"$root/tmp/gpt.log" 2>&1
}
rc=0
{
  shared=() && gpt one inside && shared=(--mesh tp=2) && gpt two inside python3 /tmp/pair.py 0 &&
    inside python3 - >"$root/tmp/difference" 2>&1 <<'PYTHON'
one, two = ([float(line.split()[-1]) for line in open("/tmp/%s.losses" % name)] for name in ("one", "two"))
difference = max(abs(a - b) for a, b in zip(one, two, strict=True))
print("largest difference of any loss:", difference)
assert len(one) == 20 and difference < 1e-12
PYTHON
} || rc=1
verdict "two tensor ranks have the losses of one process, with LibTorch's own attention (float64, 20 steps)" $rc \
  "$root"/tmp/{gpt.log,difference}

# parity WHAT FLAG...: Fashion-MNIST with the flags, with muster-train and with Python.
parity() {
  local rc=0 flags=(--data /usr/share/datasets/fashion-mnist --seed 0 "${@:2}")
  rm -f "$root"/tmp/{muster,python}.pt
  {
    pair parity 0 $place/build/muster-train --comm=gloo --optimizer=reference --no-eval "${flags[@]}" \
      --checkpoint /tmp/muster.pt &&
      pair parity 0 python3 /tmp/ddp_parity.py train "${flags[@]}" --checkpoint /tmp/python.pt &&
      same_weights muster python
  } || rc=1
  verdict "Python's DistributedDataParallel has the same weights: $1" $rc "$root"/tmp/{parity.log,difference}
}
parity "SGD, 20 steps" --max-steps 20 --batch-size 128 --lr 0.02 --momentum 0.9
parity "AdamW, 20 steps" --algorithm adamw --max-steps 20 --batch-size 128 --lr 0.001 --weight-decay 0.01
# The two ways to compute AdamW's root first differ at step 1270; only float64 shows it.
parity "AdamW, 1280 steps in float64" --algorithm adamw --dtype float64 --max-steps 1280 --batch-size 2 --lr 0.001 \
  --weight-decay 0.01
exit $failed
