#!/usr/bin/env bash
# Installs, upgrades and removes the packages of dist/ on fresh Debian 12 and 13 systems, which boot
# in containers with networks of their own (systemd-nspawn). Meanwhile jobs run at the musterd that
# systemd upgrades, restarts and gives its port (packaging/check_install.sh). Not part of
# scripts/test.sh: needs root, and
#   apt-get install mmdebstrap systemd-container
# If dist/ has muster-train as well, apt installs it on its own Debian, and it trains beside muster.
# Takes four minutes, and two gigabytes in TMPDIR; two minutes and half a gigabyte without
# muster-train.
#   scripts/install_checks.sh [SUITE...]      default: bookworm trixie
# The upgrade starts from the same version with a lower number.
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
trap 'umount "$scratch/trainer/proc" 2>/dev/null || true; rm -rf --one-file-system "$scratch"' EXIT
mkdir "$scratch/former" "$scratch/new"
cp "${packages[@]}" "$scratch/new/"
for package in "${packages[@]}"; do
  dpkg-deb --raw-extract "$package" "$scratch/raw"
  sed -i 's/^Version: .*/Version: 0.0.1/' "$scratch/raw/DEBIAN/control"
  dpkg-deb --root-owner-group --build "$scratch/raw" "$scratch/former/" >/dev/null
  rm -rf "$scratch/raw"
done

failed=0
# The trainer's own Debian; its dependencies come from the archive.
check_trainer() {
  local root=$scratch/trainer deb code
  deb=$(basename dist/muster-train_*.deb)
  echo "== $deb on bookworm"
  mkdir "$root"
  mmdebstrap --quiet --variant=apt bookworm - http://deb.debian.org/debian 2>"$scratch/trainer.log" |
    tar --extract --directory "$root" || { cat "$scratch/trainer.log" >&2; return 1; }
  cp dist/muster_*.deb "dist/$deb" "$root/root/"
  # As this machine reaches the archive.
  cp /etc/resolv.conf "$root/etc/"
  cp /etc/apt/apt.conf.d/* "$root/etc/apt/apt.conf.d/"
  mount --bind /proc "$root/proc"
  chroot "$root" sh -ec '
    export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
    cd /root
    apt-get update -qq
    apt-get install -qq -y --no-install-recommends ./muster_*.deb ./muster-train_*.deb >said 2>&1 || { cat said; exit 1; }
    echo "ok   apt installs it with what it needs"
    muster run --standalone --nproc-per-node=2 --no-python muster-train --model=gpt \
      --data=/usr/share/common-licenses/GPL-3 --layers=1 --width=32 --heads=1 --context=32 --threads=1 --max-steps=20 \
      --comm=gloo >said 2>&1 || { cat said; exit 1; }
    grep -q "^world size     2 (gloo)$" said || { cat said; exit 1; }
    echo "ok   two workers of muster train with it"
    apt-get purge -qq -y muster-train >said 2>&1 || { cat said; exit 1; }
    ! test -e /usr/bin/muster-train && ! test -e /usr/share/doc/muster-train
    echo "ok   it is removed, and nothing is left of it"' </dev/null
  code=$?
  umount "$root/proc"
  [ $code = 0 ] || echo "FAIL $deb"
  return $code
}
if compgen -G 'dist/muster-train_*.deb' >/dev/null && [[ " ${suites[*]} " == *" bookworm "* ]]; then
  check_trainer || failed=1
fi

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
