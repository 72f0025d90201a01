#!/usr/bin/env bash
# Fuzzes what reads the bytes of strangers, under ASan and UBSan, with libFuzzer:
#   scripts/fuzz.sh [TARGET [EXECUTIONS]]
# TARGET: tcpstore (the default: the codec of the workers' store and the service behind it; 10,000,000 executions) or
# checkpoints (pickles, files of torch.save, safetensors; 3,000,000).
# Needs clang (Debian: clang), which finds the sanitizers' and the fuzzer's runtime by itself. The seeds are
# test/fuzz/*_seeds.txt. Exits with 0 if nothing was found; otherwise the input that failed is in the folder that the
# last line names.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${1:-tcpstore}
case $target in
  tcpstore)
    executions=10000000
    name=tcpstore_codec
    sources=(rendezvous/fronts/tcpstore_{codec,service}.cc rendezvous/wire/tcpstore_dialect.cc
      rendezvous/core/{barrier_list,key_queues,key_value_store,meeting_list,stored_number,wait_list}.cc)
    packages=(absl_btree absl_flat_hash_map absl_statusor absl_strings)
    limits=(-max_len=512)
    ;;
  checkpoints)
    executions=3000000
    name=torch_file
    sources=(base/failure.cc trainer/io/{byte_source,dtype,file_facts,json_depth,safetensors_header,torch_archive}.cc
      trainer/io/shards/{named_tree,shard_files,shard_index}.cc trainer/io/zip/zip_reader.cc
      trainer/io/pickle/{basic_value,pickle_machine,pickle_reader,pickle_writer}.cc)
    packages=(absl_statusor absl_strings absl_str_format libdeflate)
    limits=(-max_len=2048 -rss_limit_mb=1024 -malloc_limit_mb=256 -timeout=20)
    ;;
  *)
    echo "fuzz: there is no target $target; name tcpstore or checkpoints" >&2
    exit 2
    ;;
esac
executions=${2:-$executions}
command -v clang++ > /dev/null || {
  echo "fuzz: there is no clang++; install it with: apt install clang" >&2
  exit 2
}
work=$(mktemp -d "${TMPDIR:-/tmp}/muster-fuzz.XXXXXX")
mkdir "$work/corpus"
python3 - "test/fuzz/${name}_seeds.txt" "$work/corpus" << 'PYTHON'
import pathlib, sys
lines = pathlib.Path(sys.argv[1]).read_text().splitlines()
seeds = [line for line in lines if line and not line.startswith("#")]
for number, seed in enumerate(seeds):
    pathlib.Path(sys.argv[2], f"seed{number:02}").write_bytes(bytes.fromhex(seed))
PYTHON

echo "fuzz: building $target"
# shellcheck disable=SC2046 # pkg-config prints several words
clang++ -std=c++20 -g -O1 -fno-omit-frame-pointer -I. \
  -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
  "test/fuzz/${name}_fuzz.cc" "${sources[@]}" $(pkg-config --libs "${packages[@]}") -o "$work/fuzz"

echo "fuzz: $executions executions"
if "$work/fuzz" -runs="$executions" "${limits[@]}" -print_final_stats=1 -verbosity=1 \
  -artifact_prefix="$work/" "$work/corpus" > "$work/log" 2>&1; then
  grep -E "^(Done|stat::number_of_executed_units|stat::average_exec_per_sec|stat::peak_rss_mb)" "$work/log"
  echo "fuzz: nothing found"
  rm -r "$work"
else
  tail -60 "$work/log" >&2
  echo "fuzz: failed; the input and the log are in $work" >&2
  exit 1
fi
