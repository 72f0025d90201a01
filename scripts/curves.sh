#!/usr/bin/env bash
# Trains the models of docs/trainer.md's "How well it learns", on two ranks of this machine, and
# draws their curves into docs/trainer/:
#   scripts/curves.sh [cnn] [resnet18] [gpt]      (default: all; the ResNet takes the longest)
#   scripts/curves.sh mesh     trains the GPT for an epoch as one process and on 2 x 2 x 2 ranks,
#                              for docs/parallelism.md
#   scripts/curves.sh qat      trains cnn and mlp with --qat and without, for "Weights and
#                              activations of 8 bits"
# Prints the final line of each. BINARIES names a folder of binaries (a bazel-bin) to run instead of
# building; RESULTS the place of the metrics files (else a temporary folder that is removed).
set -euo pipefail
cd "$(dirname "$0")/.."

models=("$@")
[ ${#models[@]} -gt 0 ] || models=(cnn resnet18 gpt)
/usr/bin/python3 -c 'import matplotlib' 2> /dev/null || {
  echo "curves: drawing needs python3-matplotlib; install it with apt-get" >&2
  exit 1
}
if [ -z "${BINARIES-}" ]; then
  bazel build --config=opt //launcher:muster //trainer:muster-train
  BINARIES=$(bazel info --config=opt bazel-bin)
fi
if [ -z "${RESULTS-}" ]; then
  RESULTS=$(mktemp -d "${TMPDIR:-/tmp}/muster-curves.XXXXXX")
  trap 'rm -r "$RESULTS"' EXIT
fi

fashion=(--dataset idx --data /usr/share/datasets/fashion-mnist)
train() {
  local name=$1
  shift
  echo "curves: $name: ${ranks:=2} ranks: muster-train $*"
  rm -f "$RESULTS/$name.jsonl"
  "$BINARIES/launcher/muster" run --standalone --nproc-per-node "$ranks" --no-python \
    "$BINARIES/trainer/muster-train" "$@" --metrics "$RESULTS/$name.jsonl" --checkpoint "$RESULTS/$name.pt"
}
# A megabyte of text that every machine with LibTorch has: its headers.
find /usr/include/torch/csrc/api/include/torch /usr/include/c10 -name '*.h' -print0 |
  LC_ALL=C sort -z | xargs -0 cat > "$RESULTS/headers"
head -c 1000000 "$RESULTS/headers" > "$RESULTS/text"
gpt=(--dataset text --data "$RESULTS/text" --model gpt --algorithm adamw --lr 0.002 --schedule cosine
  --warmup-steps 50 --batch-size 32 --clip 1)
draw() {
  train "$@"
  /usr/bin/python3 scripts/curves.py "$1" "$RESULTS/$1.jsonl" docs/trainer
}

for model in "${models[@]}"; do
  case $model in
    qat)
      for net in cnn mlp; do
        train "$net-float" "${fashion[@]}" --model "$net" --epochs 5
        train "$net-qat" "${fashion[@]}" --model "$net" --epochs 5 --qat --profile
      done
      ;;
    cnn)
      draw cnn "${fashion[@]}" --model cnn --epochs 1
      ;;
    resnet18)
      draw resnet18 "${fashion[@]}" --model resnet18 --stem imagenet --epochs 2 --channels-last \
        --lr 0.05 --schedule cosine --warmup-steps 100
      ;;
    gpt)
      draw gpt "${gpt[@]}" --epochs 2
      ;;
    mesh)
      ranks=1 train one "${gpt[@]}" --epochs 1
      ranks=8 train mesh "${gpt[@]}" --epochs 1 --mesh pp=2,dp=2,tp=2 --zero 1 --threads 1
      /usr/bin/python3 scripts/curves.py gpt-2x2x2 docs/parallelism "one process=$RESULTS/one.jsonl" \
        "2 x 2 x 2 ranks=$RESULTS/mesh.jsonl"
      ;;
    *)
      echo "curves: no model $model; there are cnn, resnet18, gpt, mesh and qat" >&2
      exit 2
      ;;
  esac
done
