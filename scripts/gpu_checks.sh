#!/usr/bin/env bash
# Checks muster-train and muster on a machine with a GPU, beside Python's DDP on the same GPU, and
# prints what ran, what it found and what it could not check. Not part of scripts/test.sh.
#
# usage: scripts/gpu_checks.sh [--rehearse] [CHECK...]      default: all; --list names them
#
# Needs a GPU, Python 3 with a PyTorch that sees it, and this tree. One GPU is enough: for two
# ranks, NCCL is told that they are on two hosts. --rehearse does the same on the CPU over Gloo,
# whose headers are needed to build; it tests the checks themselves, not the GPU.
#
#   MUSTER_TRAIN   an existing muster-train; else trainer/CMakeLists.txt builds one in
#                  .cache/gpu_checks* with the LibTorch of that PyTorch; CMAKE_PREFIX_PATH names
#                  further places of libraries
#   MUSTER         an existing muster; else Bazel builds one if it is installed, and otherwise the
#                  launcher's checks are left out
#   PYTHON         the Python 3 with PyTorch; default: python3
#
# Exits with 0 if no check failed.
set -euo pipefail
cd "$(dirname "$0")/.."
export PYTHON=${PYTHON:-python3}

case " $* " in
  *" --list "* | *" --help "* | *" -h "*) exec "$PYTHON" scripts/gpu/checks.py "$@" ;;
esac

if [ -z "${MUSTER_TRAIN:-}" ]; then
  torch=$("$PYTHON" -c 'import torch; print(torch.utils.cmake_prefix_path)') ||
    { echo "gpu_checks: $PYTHON has no PyTorch; name one that has with PYTHON" >&2; exit 2; }
  build=$PWD/.cache/gpu_checks-$("$PYTHON" -c 'import torch; print(torch.__version__)')
  mkdir -p "$build"
  echo "gpu_checks: building muster-train with the LibTorch in $torch"
  {
    cmake -S trainer -B "$build" -DCMAKE_PREFIX_PATH="$torch${CMAKE_PREFIX_PATH:+;$CMAKE_PREFIX_PATH}" &&
      cmake --build "$build" -j "$(nproc)"
  } >"$build/log" 2>&1 || {
    grep -E -A 4 'error:|CMake Error|undefined reference' "$build/log" >&2 || tail -n 20 "$build/log" >&2
    echo "gpu_checks: muster-train could not be built; $build/log has it all" >&2
    exit 1
  }
  export MUSTER_TRAIN=$build/muster-train
fi
if [ -z "${MUSTER:-}" ] && command -v bazel >/dev/null; then
  bazel build --config=opt //launcher:muster >/dev/null 2>&1 ||
    { echo "gpu_checks: bazel build --config=opt //launcher:muster failed" >&2; exit 1; }
  MUSTER=$(bazel info --config=opt bazel-bin 2>/dev/null)/launcher/muster
fi
export MUSTER=${MUSTER:-}
exec "$PYTHON" scripts/gpu/checks.py "$@"
