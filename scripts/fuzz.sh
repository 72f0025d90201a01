#!/usr/bin/env bash
# Fuzzes the TCPStore codec and the service behind it under ASan and UBSan, with libFuzzer:
#   scripts/fuzz.sh [EXECUTIONS]     10,000,000 unless given
# Needs clang (Debian: clang), which finds the sanitizers' and the fuzzer's runtime by itself. The seeds are
# test/fuzz/tcpstore_codec_seeds.txt. Exits with 0 if nothing was found; otherwise the input that failed is in
# the folder that the last lines name.
set -euo pipefail
cd "$(dirname "$0")/.."

executions=${1:-10000000}
command -v clang++ > /dev/null || {
  echo "fuzz: there is no clang++; install it with: apt install clang" >&2
  exit 2
}
work=$(mktemp -d "${TMPDIR:-/tmp}/muster-fuzz.XXXXXX")
mkdir "$work/corpus"
python3 - test/fuzz/tcpstore_codec_seeds.txt "$work/corpus" << 'PYTHON'
import pathlib, sys
lines = pathlib.Path(sys.argv[1]).read_text().splitlines()
seeds = [line for line in lines if line and not line.startswith("#")]
for number, seed in enumerate(seeds):
    pathlib.Path(sys.argv[2], f"seed{number:02}").write_bytes(bytes.fromhex(seed))
PYTHON

echo "fuzz: building"
# shellcheck disable=SC2046 # pkg-config prints several words
clang++ -std=c++20 -g -O1 -fno-omit-frame-pointer -I. \
  -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
  test/fuzz/tcpstore_codec_fuzz.cc \
  rendezvous/fronts/tcpstore_{codec,dialect,service}.cc \
  rendezvous/core/{barrier_list,key_queues,key_value_store,stored_number,wait_list}.cc \
  $(pkg-config --libs absl_btree absl_flat_hash_map absl_statusor absl_strings) \
  -o "$work/fuzz"

echo "fuzz: $executions executions"
if "$work/fuzz" -runs="$executions" -max_len=512 -print_final_stats=1 -verbosity=1 -artifact_prefix="$work/" \
  "$work/corpus" > "$work/log" 2>&1; then
  grep -E "^(Done|stat::number_of_executed_units|stat::average_exec_per_sec|stat::peak_rss_mb)" "$work/log"
  echo "fuzz: nothing found"
  rm -r "$work"
else
  tail -60 "$work/log" >&2
  echo "fuzz: failed; the input and the log are in $work" >&2
  exit 1
fi
