#!/usr/bin/env bash
# Installs, upgrades and removes the packages of dist/ on fresh Debian 12 and 13 systems, which boot in containers with
# networks of their own: systemd-nspawn. Jobs run meanwhile at the musterd that is upgraded, restarted and given its
# port by systemd (packaging/check_install.sh). Not part of scripts/test.sh: needs root, and
#   apt-get install mmdebstrap systemd-container
# Takes two minutes, and half a gigabyte in TMPDIR while it runs.
#   scripts/install_checks.sh [SUITE...]      default: bookworm trixie
# The version that is upgraded from is the same one with a lower number.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo "install_checks: booting a system needs root; run it as root" >&2; exit 2; }
for tool in mmdebstrap systemd-nspawn; do
  command -v "$tool" >/dev/null || {
    echo "install_checks: $tool is missing; apt-get install mmdebstrap systemd-container" >&2
    exit 2
  }
done
packages=(dist/muster_*.deb dist/musterd_*.deb)
[ -e "${packages[0]}" ] || { echo "install_checks: dist/ has no packages; scripts/package.sh makes them" >&2; exit 2; }
suites=("$@")
[ ${#suites[@]} -gt 0 ] || suites=(bookworm trixie)

scratch=$(mktemp -d)
trap 'rm -rf --one-file-system "$scratch"' EXIT
mkdir "$scratch/former" "$scratch/new"
cp "${packages[@]}" "$scratch/new/"
for package in "${packages[@]}"; do
  dpkg-deb --raw-extract "$package" "$scratch/raw"
  sed -i 's/^Version: .*/Version: 0.0.1/' "$scratch/raw/DEBIAN/control"
  dpkg-deb --root-owner-group --build "$scratch/raw" "$scratch/former/" >/dev/null
  rm -rf "$scratch/raw"
done

failed=0
for suite in "${suites[@]}"; do
  root=$scratch/$suite
  mkdir "$root"
  mmdebstrap --quiet --variant=minbase --include=dbus,procps,systemd "$suite" - http://deb.debian.org/debian \
    2>"$scratch/$suite.log" | tar --extract --directory "$root" || { cat "$scratch/$suite.log" >&2; exit 1; }
  mkdir "$root/root/check"
  cp -r "$scratch/former" "$scratch/new" packaging/check_install.sh "$root/root/check/"
  cat >"$root/etc/systemd/system/check.service" <<'END'
[Service]
Type=oneshot
ExecStart=/bin/sh -c '/root/check/check_install.sh >/root/check/said 2>&1; echo $? >/root/check/code'
ExecStopPost=systemctl poweroff --force
TimeoutStartSec=300
END
  mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
  ln -s ../check.service "$root/etc/systemd/system/multi-user.target.wants/"
  timeout 400 systemd-nspawn --quiet --boot --console=read-only --private-network --register=no --keep-unit \
    --machine="muster-check-$$" --directory="$root" >"$scratch/$suite.boot" 2>&1 </dev/null || true
  cat "$root/root/check/said" || cat "$scratch/$suite.boot"
  [ "$(cat "$root/root/check/code" 2>/dev/null)" = 0 ] || failed=1
done
if [ $failed = 0 ]; then echo "install_checks: all as it should be"; else echo "install_checks: something failed" >&2; fi
exit $failed
