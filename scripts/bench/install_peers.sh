#!/usr/bin/env bash
# Installs the peers of scripts/bench.sh and its tools for measuring and plotting: Debian 12's own
# packages. Does not start their services, and changes nothing else on the machine.
set -euo pipefail

packages=(
  # The peers: torchrun, mpiexec.hydra, mpirun, srun, etcd, pdsh; and how they reach hosts.
  python3-torch mpich openmpi-bin slurm-wlm etcd-server pdsh openssh-client openssh-server
  # Micro-benchmarks, plots.
  libbenchmark-dev python3-matplotlib
)

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

echo "bench: installing ${missing[*]}"
root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || {
    echo "bench: installing packages needs root, and there is no sudo; run scripts/bench/install_peers.sh as root" >&2
    exit 1
  }
  root=(sudo)
fi
"${root[@]}" apt-get update -qq
# RUNLEVEL=1: packages do not start their services (invoke-rc.d(8)).
"${root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
