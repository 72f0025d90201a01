#!/usr/bin/env bash
# Fuzzes everything that reads bytes of strangers, workers and users, under ASan and UBSan, with
# libFuzzer:
#   scripts/fuzz.sh [TARGET [EXECUTIONS]]
#   scripts/fuzz.sh all [EXECUTIONS]
#     entrance             a connection to the rendezvous's port: routing by its first byte, death
#                          notices, liveness probes
#     tcpstore_codec       the workers' store: its codec, and the service behind it
#     torch_file           checkpoints: pickles, files of torch.save, safetensors
#     rendezvous_messages  agents' messages to a daemon, and the daemon's state
#     journal              what a daemon reads at its start: the write-ahead log, the tables, the
#                          records in them
#     identity             token files and certificates
#     hosts                lists of hosts, and messages between the processes of a launch tree
#     event_logs           event logs, and muster replay's output for them
#     configuration        command lines and environments of muster run, muster launch and musterd
#     texts                endpoints, death notices, the journal's records, runs, error files,
#                          --rdzv-conf, secrets
# The default is 10,000,000 executions of each. Needs clang (Debian: clang), which finds the
# sanitizers' and the fuzzer's runtime by itself. The seeds are test/fuzz/*_seeds.txt; libFuzzer's
# own corpus is kept from one run to the next in ${XDG_CACHE_HOME:-~/.cache}/muster/fuzz/TARGET.
# Exits with 0 if nothing was found; otherwise the failing input is in the folder named by the last
# line.
set -euo pipefail
cd "$(dirname "$0")/.."

targets=(entrance tcpstore_codec torch_file rendezvous_messages journal identity hosts event_logs configuration texts)
target=${1:-tcpstore_codec}
[ "$target" = all ] || targets=("$target")
for name in "${targets[@]}"; do
  [ -f "test/fuzz/${name}_seeds.txt" ] || {
    echo "fuzz: there is no target $name; name all, or one of those that are listed in scripts/fuzz.sh" >&2
    exit 2
  }
done
command -v clang++ > /dev/null || {
  echo "fuzz: there is no clang++; install it with: apt install clang" >&2
  exit 2
}

# An output tree of its own: switching compilers in the usual one would rebuild everything, twice.
output=${XDG_CACHE_HOME:-$HOME/.cache}/muster/fuzz
mkdir -p "$output"
bazel() { command bazel --output_base="$output/bazel" "$@"; }
echo "fuzz: building ${targets[*]}"
# No symlinks to it here either: //... would follow them.
bazel build --config=fuzz --experimental_convenience_symlinks=ignore $(printf '//test/fuzz:%s_fuzzer ' "${targets[@]}") 2> "$output/build.log" || {
  tail -40 "$output/build.log" >&2
  exit 1
}
bin=$(bazel info --config=fuzz bazel-bin 2> /dev/null)

for name in "${targets[@]}"; do
  executions=${2:-10000000}
  # Without the entropic schedule, which takes half of libFuzzer's time.
  limits=(-max_len=2048 -rss_limit_mb=1024 -malloc_limit_mb=256 -timeout=20 -entropic=0)
  case $name in tcpstore_codec | rendezvous_messages | hosts | configuration) limits+=(-max_len=512) ;; esac
  corpus=$output/$name
  mkdir -p "$corpus"
  python3 - "test/fuzz/${name}_seeds.txt" "$corpus" << 'PYTHON'
import pathlib, sys
lines = pathlib.Path(sys.argv[1]).read_text().splitlines()
seeds = [line for line in lines if line and not line.startswith("#")]
for number, seed in enumerate(seeds):
    pathlib.Path(sys.argv[2], f"seed{number:02}").write_bytes(bytes.fromhex(seed))
PYTHON
  work=$(mktemp -d "${TMPDIR:-/tmp}/muster-fuzz.XXXXXX")
  echo "fuzz: $name, $executions executions, from $(find "$corpus" -type f | wc -l) inputs"
  if "$bin/test/fuzz/${name}_fuzzer" -runs="$executions" "${limits[@]}" -print_final_stats=1 -verbosity=1 \
    -artifact_prefix="$work/" "$corpus" > "$work/log" 2>&1; then
    grep -E "^(Done|stat::number_of_executed_units|stat::average_exec_per_sec|stat::peak_rss_mb)" "$work/log"
    rm -r "$work"
  else
    tail -60 "$work/log" >&2
    echo "fuzz: $name failed; the input and the log are in $work" >&2
    exit 1
  fi
done
echo "fuzz: nothing found"
