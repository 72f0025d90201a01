#!/usr/bin/env bash
# Exchanges checkpoints between muster-train's reader and writer and the PyTorch of Debian 13
# (python3-torch 2.6), both ways, in the folder of scripts/compat/torch26.sh. Not part of
# scripts/test.sh: needs that folder, and root.
#
# usage: scripts/compat/checkpoints26.sh [FOLDER]      default: /var/tmp/muster-debian13
#
# The files are those of test/trainer/io/interop_test.cc, which does the same with this machine's
# PyTorch; 2.6 reads ours with weights_only=True. Ends with the speed of both on this machine, in
# memory (a tmpfs).
set -euo pipefail
cd "$(dirname "$0")/../.."
root=${1:-/var/tmp/muster-debian13}
[ "$(id -u)" = 0 ] || { echo "checkpoints26.sh: chroot needs root; run it as root" >&2; exit 2; }
[ -e "$root/.complete" ] || { echo "checkpoints26.sh: $root is missing; scripts/compat/torch26.sh makes it" >&2; exit 2; }

# Restarts itself with mounts of its own, which end with the script and do not affect others.
if [ $# -lt 2 ]; then
  bazel build //test/trainer/io:interop_program
  exec unshare --mount scripts/compat/checkpoints26.sh "$root" "$(bazel info bazel-bin)/test/trainer/io/interop_program"
fi
program=$2
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/tmp"
files=$root/tmp/files
mkdir "$files"
cp test/trainer/io/interop.py "$root/tmp/"
python() { chroot "$root" env -i PATH=/usr/bin:/bin LANG=C.UTF-8 python3 /tmp/interop.py "$1" /tmp/files; }

failed=0
# same WHAT ONE TWO: whether the two files are equal.
same() {
  if cmp -s "$2" "$3"; then
    echo "ok   $1 ($(wc -l <"$2") lines)"
  else
    failed=1
    echo "FAIL $1"
    diff "$2" "$3" | cut -c 1-300 || true
  fi
}
chroot "$root" env -i PATH=/usr/bin:/bin python3 -c 'import torch; print("torch", torch.__version__)'
$program write "$files" >"$root/tmp/ours"
python describe >"$root/tmp/ours-by-python"
same "PyTorch reads what we write" "$root/tmp/ours" "$root/tmp/ours-by-python"
python write >"$root/tmp/pythons"
$program describe "$files" >"$root/tmp/pythons-by-us"
same "we read or refuse what PyTorch writes" "$root/tmp/pythons" "$root/tmp/pythons-by-us"
python start
$program copy "$files"
python resume >"$root/tmp/resumed"
printf '<All keys matched successfully>\nTrue\n' >"$root/tmp/expected"
same "a run goes on exactly from a checkpoint that passed through us" "$root/tmp/expected" "$root/tmp/resumed"
python speed
$program speed "$files"
exit $failed
