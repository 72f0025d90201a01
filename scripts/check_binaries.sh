#!/usr/bin/env bash
# The installed binaries need libc, libm and the loader, nothing else. Prints their sizes.
set -euo pipefail
cd "$(dirname "$0")/.."

bazel build --config=opt //launcher:muster //rendezvous:musterd
bin=$(bazel info --config=opt bazel-bin 2>/dev/null)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
for binary in launcher/muster rendezvous/musterd; do
  foreign=$(ldd "$bin/$binary" | awk '{print $1}' |
    grep -vE '^(linux-vdso\.so\.1|libc\.so\.6|libm\.so\.6|/lib64/ld-linux-x86-64\.so\.2|/lib/ld-linux-aarch64\.so\.1)$' || true)
  if [ -n "$foreign" ]; then
    echo "binaries: $binary needs more than libc and libm: $foreign" >&2
    failed=1
  fi
  strip -o "$scratch/stripped" "$bin/$binary"
  echo "binaries: $binary $(stat -c %s "$bin/$binary") bytes, stripped $(stat -c %s "$scratch/stripped")"
done
exit $failed
