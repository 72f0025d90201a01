#!/usr/bin/env bash
# Muster against torchrun, mpiexec.hydra, mpirun, pdsh, srun and etcd: installs them, builds with
# --config=opt, and runs the benchmarks with the contestants in turns.
#
#   scripts/bench.sh                     all of them
#   scripts/bench.sh launch logs         some: launch hosts rendezvous store tunnel failure logs daemon
#                                        fleet training checkpoints parallel
#   scripts/bench.sh --pairs 11 launch   more rounds (default: 5, after a warm-up)
#   scripts/bench.sh --quick             small sizes, one round: does everything run?
#   scripts/bench.sh --json FILE --write-docs
#                                        the results for programs, and docs/benchmarks/results.md from
#                                        them; docs/benchmarks.md is a summary, kept by hand
#
# BENCH_BIN names a folder of binaries (a bazel-bin) to measure instead of building. `parallel`
# needs the Debian 13 of scripts/compat/torch26.sh and root for all peers but one, and builds
# muster-train there as well. `hosts` and `fleet` need root.
set -euo pipefail
cd "$(dirname "$0")/.."

export PYTHONDONTWRITEBYTECODE=1
bench=(/usr/bin/python3 scripts/bench/bench.py "$@")
if ! targets=$("${bench[@]}" --list-targets); then
  exit 2
fi
case " $* " in *" -h "* | *" --help "*) echo "$targets"; exit 0 ;; esac
scripts/bench/install_peers.sh
if [ -z "${BENCH_BIN-}" ]; then
  # shellcheck disable=SC2086
  bazel build --config=opt $targets
  BENCH_BIN=$(bazel info --config=opt bazel-bin)
  export BENCH_BIN BENCH_BUILD=1
fi
exec "${bench[@]}"
