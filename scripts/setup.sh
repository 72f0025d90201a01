#!/usr/bin/env bash
# Installs everything to build, run and test Muster: Debian 12's own packages, nothing else.
# Idempotent, asks nothing. Needs root or sudo if a package is missing.
#   scripts/setup.sh               everything
#   scripts/setup.sh --no-tests    only for building and running
set -euo pipefail

packages=(
  # The build: Bazel 4.2.3 and its rules.
  bazel-bootstrap bazel-rules-java bazel-rules-proto g++ git
  # muster and musterd.
  libabsl-dev libboost1.81-dev libcli11-dev libfmt-dev libgrpc++-dev libncurses-dev libprotobuf-dev libspdlog-dev
  libsqlite3-dev libssl-dev libtomlplusplus-dev nlohmann-json3-dev protobuf-compiler protobuf-compiler-grpc
  # muster-train. LibTorch's default, the reference BLAS, is 25 times slower than OpenBLAS.
  dataset-fashion-mnist libcsv-dev libdeflate-dev libgloo-dev libopenblas0-pthread libpng-dev libtorch-dev
  libturbojpeg0-dev zlib1g-dev
)
# GoogleTest, real PyTorch workers, and tools that inspect processes.
test_packages=(
  bsdextrautils clang-format cmake etcd-client etcd-server help2man iproute2 iptables libgmock-dev libgtest-dev make
  man-db openssh-client openssh-server procps python3 python3-torch slurm-client slurmctld slurmd strace tmux
)
case "${1-}" in
  "") packages+=("${test_packages[@]}") ;;
  --no-tests) ;;
  *)
    echo "setup: unknown argument '$1'; the only one is --no-tests" >&2
    exit 2
    ;;
esac

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done

if [ ${#missing[@]} -eq 0 ]; then
  echo "setup: all ${#packages[@]} packages are installed"
  exit 0
fi

echo "setup: installing ${missing[*]}"
root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || {
    echo "setup: installing packages needs root, and there is no sudo; run this script as root" >&2
    exit 1
  }
  root=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
"${root[@]}" apt-get update -qq
"${root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
echo "setup: installed ${#missing[@]} packages"
