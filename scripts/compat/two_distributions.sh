#!/usr/bin/env bash
# One job on hosts of two distributions: `muster run --hosts=node0:2,node1:2`, where node0 is this
# Debian; node1's sshd, and everything it starts, is in the Debian 13 of scripts/compat/torch26.sh,
# to which Muster is sent.
#
# usage: scripts/compat/two_distributions.sh [ROOT]
#
# MUSTER names the program (default: bazel-bin/launcher/muster). Needs root. Installs openssh-server
# in ROOT if it is missing. Hosts are the network namespaces of test/e2e/ssh_hosts.sh; nothing is
# left afterwards.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=${1:-/var/tmp/muster-debian13}
muster=$(realpath "${MUSTER:-bazel-bin/launcher/muster}")

if [ ! -d "$root/etc" ]; then
  echo "two_distributions: there is no Debian 13 in $root; scripts/compat/torch26.sh makes one" >&2
  exit 2
fi
if [ "${INSIDE-}" != 1 ]; then
  if [ ! -x "$root/usr/sbin/sshd" ]; then
    # RUNLEVEL=1: packages do not start their services (invoke-rc.d(8)).
    chroot "$root" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 sh -c \
      'apt-get update -qq && apt-get install -y -qq --no-install-recommends openssh-server' >/dev/null
  fi
  # Everything below runs in these namespaces, and ends with their first process.
  INSIDE=1 exec unshare --mount --pid --fork --kill-child --mount-proc "$0" "$@"
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/hosts" "$folder/typed"
cp "$muster" "$folder/typed/muster"

mkfifo "$folder/ready"
unshare --net sh test/e2e/ssh_hosts.sh 2 "$folder/hosts" MUSTER_COMPAT=1 >"$folder/ready" &
typed=$!
read -r ready <"$folder/ready"
[ "$ready" = ready ]

# node1 again, in the other root.
kill "$(cat "$folder/hosts/node1.sshd")"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
mkdir -p "$root/run/sshd" "$root$folder/hosts"
mount --bind "$folder/hosts" "$root$folder/hosts"
: >"$folder/node1.log"
nsenter --target "$(cat "$folder/hosts/node1.pid")" --net --uts \
  chroot "$root" /usr/sbin/sshd -D -e -f "$folder/hosts/node1.config" 2>"$folder/node1.log" &
until grep -q 'Server listening' "$folder/node1.log"; do
  kill -0 $!
  sleep 0.05
done

PATH=$folder/hosts/bin:$PATH nsenter --target $typed --net "$folder/typed/muster" run --hosts=node0:2,node1:2 \
  --no-python sh -c 'echo "rank $RANK of $WORLD_SIZE: Debian $(cat /etc/debian_version), $(hostname)"' |
  tee "$folder/out"

expected12=$(cat /etc/debian_version) expected13=$(cat "$root/etc/debian_version")
for line in "0 of 4: Debian $expected12, node0" "1 of 4: Debian $expected12, node0" \
  "2 of 4: Debian $expected13, node1" "3 of 4: Debian $expected13, node1"; do
  grep -qF "rank $line" "$folder/out"
done
echo "two_distributions: one job of Debian $expected12 and Debian $expected13"
