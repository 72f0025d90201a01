#!/usr/bin/env bash
# Checks that the installed binaries need only libc, libm and the loader, and are hardened. Prints
# their sizes.
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
  # has WHAT COMMAND...: the command's output must have a line that matches PATTERN.
  has() {
    local what=$1 pattern=$2
    shift 2
    # Reads to the end: a program whose pipe breaks fails.
    "$@" | grep -E "$pattern" >/dev/null && return
    echo "binaries: $binary is not hardened: $what" >&2
    failed=1
  }
  has "no full RELRO: its GOT can be written to" BIND_NOW readelf -dW "$bin/$binary"
  has "no RELRO" GNU_RELRO readelf -lW "$bin/$binary"
  has "its stack can be executed" 'GNU_STACK .* RW ' readelf -lW "$bin/$binary"
  has "no stack protector" __stack_chk_fail readelf --dyn-syms -W "$bin/$binary"
  # Level 3 also checks sizes that are known only at run time.
  has "no _FORTIFY_SOURCE" '__[a-z]+_chk(@|$)' readelf --dyn-syms -W "$bin/$binary"
  if readelf -lW "$bin/$binary" | grep -E 'LOAD .* RWE ' >/dev/null; then
    echo "binaries: $binary is not hardened: it has memory that can be written to and executed" >&2
    failed=1
  fi
  if readelf -dW "$bin/$binary" | grep -E 'RPATH|RUNPATH' >/dev/null; then
    echo "binaries: $binary looks for libraries beside itself" >&2
    failed=1
  fi
  # muster has a fixed address, for a faster start (launcher/BUILD.bazel).
  if [ "$binary" = rendezvous/musterd ]; then
    has "its address is fixed" 'Type: *DYN' readelf -hW "$bin/$binary"
  fi
  strip -o "$scratch/stripped" "$bin/$binary"
  echo "binaries: $binary $(stat -c %s "$bin/$binary") bytes, stripped $(stat -c %s "$scratch/stripped")"
done
# With systemd: the unit file's exposure in tenths. 15 is "OK".
if command -v systemd-analyze >/dev/null; then
  systemd-analyze security --offline=true --threshold=15 packaging/debian/musterd.service >"$scratch/unit" || {
    grep -E '^✗|→' "$scratch/unit" >&2
    failed=1
  }
  echo "binaries: musterd.service: $(tail -n 1 "$scratch/unit")"
fi
exit $failed
