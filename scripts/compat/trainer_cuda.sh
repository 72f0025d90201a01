#!/usr/bin/env bash
# Builds muster-train with trainer/CMakeLists.txt against a LibTorch with CUDA and NCCL, Debian 13's
# (libtorch-cuda-dev 2.6, CUDA 12.4, NCCL 2.22 of contrib and non-free), and runs what works without
# a GPU. Not part of scripts/test.sh: the folder takes 11 GB, 3 of them over the network the first
# time, and needs root. scripts/gpu_checks.sh is for machines with a GPU.
#
# usage: scripts/compat/trainer_cuda.sh [FOLDER]      default: /var/tmp/muster-cuda13; kept
#
# Debian has no cuDNN, only a program that downloads it, so the script builds a library of that name
# from the symbols that LibTorch lacks. Each of its functions exits the process: it serves for
# linking, and for code that reaches no device.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=${1:-/var/tmp/muster-cuda13}
[ "$(id -u)" = 0 ] || { echo "trainer_cuda.sh: debootstrap and chroot need root; run it as root" >&2; exit 2; }
place=/opt/trainer-cuda # inside the folder
packages="libtorch-cuda-dev libgloo-cuda-dev libnccl-dev nvidia-cuda-toolkit g++ g++-13 cmake ninja-build python3
  libabsl-dev libcli11-dev nlohmann-json3-dev zlib1g-dev libdeflate-dev libcsv-dev libpng-dev libturbojpeg0-dev
  libopenblas0-pthread dataset-fashion-mnist"
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 "$@"; }

case ${2:-start} in
  start)
    if [ ! -e "$root/.complete" ]; then
      command -v debootstrap >/dev/null ||
        { echo "trainer_cuda.sh: debootstrap is missing; apt-get install debootstrap" >&2; exit 2; }
      echo "trainer_cuda.sh: making a Debian 13 with CUDA in $root (once)"
      unshare --mount scripts/compat/trainer_cuda.sh "$root" install >"$root.log" 2>&1 || {
        tail -5 "$root.log" >&2
        exit 1
      }
    fi
    # Restarts itself with mounts, processes and a network of its own. They end with the script, and
    # only loopback can be reached.
    exec unshare --mount --net --pid --fork --kill-child scripts/compat/trainer_cuda.sh "$root" check
    ;;
  install)
    rm -rf --one-file-system "$root"
    debootstrap --variant=minbase --include=ca-certificates --components=main,contrib,non-free trixie "$root"
    cp /etc/apt/apt.conf.d/* "$root/etc/apt/apt.conf.d/" 2>/dev/null || true
    cp /etc/resolv.conf "$root/etc/"
    mount -t proc proc "$root/proc"
    # One of the packages would download cuDNN from its vendor.
    echo "nvidia-cudnn nvidia-cudnn/question select I Decline" | inside debconf-set-selections
    # shellcheck disable=SC2086 # the packages are words
    inside DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $packages
    inside apt-get clean
    touch "$root/.complete"
    exit
    ;;
esac

ip link set lo up
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t tmpfs tmpfs "$root/tmp"
mkdir -p "$root$place/source" "$root$place/stub"
mount --bind . "$root$place/source"
mount -o remount,bind,ro "$root$place/source"

failed=0
# verdict WHAT RC LOG...: prints whether it went well, and the logs if not.
verdict() {
  if [ "$2" = 0 ]; then
    echo "ok   $1"
  else
    failed=1
    echo "FAIL $1"
    tail -n 12 "${@:3}"
  fi
}

# cuDNN's symbols with their version, in a library of that name.
cuda=/usr/lib/x86_64-linux-gnu/libtorch_cuda.so
symbols=$(inside nm -D --undefined-only $cuda | sed -n 's/.* \(cudnn[A-Za-z0-9_]*\)@libcudnn\.so\.9$/\1/p')
{
  echo '#include <stdio.h>'
  echo '#include <stdlib.h>'
  for symbol in $symbols; do
    printf 'void %s(void) { puts("%s: this is not cuDNN"); abort(); }\n' "$symbol" "$symbol"
  done
} >"$root$place/stub/cudnn.c"
echo 'libcudnn.so.9 { global: *; };' >"$root$place/stub/cudnn.map"
inside gcc -shared -fPIC -o $place/stub/libcudnn.so.9 -Wl,-soname,libcudnn.so.9 \
  -Wl,--version-script=$place/stub/cudnn.map $place/stub/cudnn.c

configure() { # FOLDER FLAG...
  inside cmake -S $place/source/trainer -B "$@" -G Ninja -DCMAKE_EXE_LINKER_FLAGS=-Wl,-rpath-link,$place/stub
}
rc=0
{ configure $place/build && inside cmake --build $place/build -j 2 -- -k 0; } >"$root/tmp/build.log" 2>&1 || rc=$?
if [ $rc != 0 ]; then
  echo "FAIL trainer/CMakeLists.txt with CUDA and NCCL"
  grep -E -A 4 'error:|CMake Error|undefined reference' "$root/tmp/build.log" || tail -20 "$root/tmp/build.log"
  exit 1
fi
warnings=$(grep -A 1 'warning:' "$root/tmp/build.log" | grep -c "$place/source" || true)
echo "ok   trainer/CMakeLists.txt builds and links with CUDA and NCCL ($warnings warnings)"

rc=0
{
  configure $place/no-gloo -DMUSTER_GLOO=OFF && inside cmake --build $place/no-gloo -j 2
} >"$root/tmp/no-gloo.log" 2>&1 || rc=1
verdict "builds and links without Gloo" $rc "$root/tmp/no-gloo.log"

run() { # SECONDS COMMAND...: with the library that is none
  inside LD_LIBRARY_PATH=$place/stub GLOO_SOCKET_IFNAME=lo OMP_NUM_THREADS=1 timeout "$@"
}
train=$place/build/muster-train
tiny=(--dataset=generated --model=mlp --seed=3 --batch-size=8 --epochs=8)

# rank RANK WORLD FLAG...: one rank, whose output goes to rank-RANK.log and rank-RANK.json; prints
# its exit code.
rank() {
  local rc=0
  run 120 env RANK="$1" WORLD_SIZE="$2" LOCAL_RANK="$1" LOCAL_WORLD_SIZE="$2" MASTER_ADDR=127.0.0.1 MASTER_PORT=29517 \
    TORCHELASTIC_ERROR_FILE="/tmp/rank-$1.json" $train "${tiny[@]}" "${@:3}" >"$root/tmp/rank-$1.log" 2>&1 || rc=$?
  echo "$rc"
}
# pair FLAG...: two of them; prints both exit codes.
pair() {
  rank 0 2 "$@" >"$root/tmp/first" &
  rank 1 2 "$@" >"$root/tmp/second"
  wait $!
  paste -d ' ' "$root/tmp/first" "$root/tmp/second"
}
# Whether rank RANK has printed one sentence with WORDS in it, also to its error file.
sentence() { # RANK WORDS
  [ "$(grep -c '^muster-train: rank' "$root/tmp/rank-$1.log")" = 1 ] &&
    grep -q "^muster-train: rank $1: $2" "$root/tmp/rank-$1.log" && grep -q "$2" "$root/tmp/rank-$1.json"
}

rc=0
{
  inside g++ -std=c++20 -DUSE_C10D_GLOO -DUSE_C10D_NCCL -DUSE_CUDA -I$place/source \
    -I/usr/include/torch/csrc/api/include -o $place/nccl_backend_program \
    $place/source/test/trainer/compat/nccl_backend_program.cc -Wl,-rpath-link,$place/stub \
    -Wl,--no-as-needed -ltorch -ltorch_cpu -ltorch_cuda -lc10 -lc10_cuda -lcudart -lnccl -lgloo &&
    run 60 $place/nccl_backend_program
} >"$root/tmp/backend.log" 2>&1 || rc=1
verdict "a backend knows its GPU before it connects, connects at once, and is shut down (fake backend)" $rc \
  "$root/tmp/backend.log"

rc=0
{ [ "$(rank 0 1 --comm=nccl)" = 2 ] && sentence 0 "NCCL needs a GPU"; } || rc=1
verdict "--comm nccl with one rank and no GPU: one sentence, exit code 2, error file" $rc "$root"/tmp/rank-0.*

rc=0
{ [ "$(pair --comm=nccl)" = "2 2" ] && sentence 0 "NCCL needs a GPU" && sentence 1 "NCCL needs a GPU"; } || rc=1
verdict "--comm nccl with two ranks and no GPU: the same of both" $rc "$root"/tmp/rank-*

rc=0
{
  [ "$(pair --max-steps=40 --loss-log=/tmp/whole.losses --checkpoint-dir=/tmp/two --checkpoint-every=20 \
    --checkpoint=/tmp/whole.pt --export=/tmp/whole.safetensors)" = "0 0" ] &&
    grep -q "shared memory: 2 ranks on one host" "$root/tmp/rank-0.log" &&
    [ "$(wc -l <"$root/tmp/whole.losses")" = 40 ]
} || rc=1
verdict "without a GPU --comm auto trains on the CPU (2 ranks, 40 steps)" $rc "$root"/tmp/rank-*

rc=0
{
  [ "$(pair --max-steps=20 --loss-log=/tmp/part.losses --checkpoint-dir=/tmp/parts --checkpoint-every=20)" = "0 0" ] &&
    [ "$(pair --max-steps=40 --loss-log=/tmp/part.losses --checkpoint-dir=/tmp/parts --checkpoint-every=20 \
      --checkpoint=/tmp/parts.pt)" = "0 0" ] &&
    grep -q "resuming from" "$root/tmp/rank-0.log" &&
    cmp "$root"/tmp/{whole,part}.losses && cmp "$root"/tmp/{whole,parts}.pt
} || rc=1
verdict "goes on from a checkpoint with the same losses and the same model" $rc "$root"/tmp/rank-*

rc=0
{
  train=$place/no-gloo/muster-train
  [ "$(rank 0 1)" = 2 ] && sentence 0 "ranks without NCCL meet over Gloo, and no GPU is visible"
} || rc=1
train=$place/build/muster-train
verdict "without Gloo and without a GPU: one sentence, exit code 2, error file" $rc "$root"/tmp/rank-0.*

rc=0
run 60 $train eval --checkpoint=/tmp/whole.safetensors "${tiny[@]}" >"$root/tmp/eval.log" 2>&1 || rc=1
verdict "exports, and measures what it has exported" $rc "$root/tmp/eval.log"
exit $failed
