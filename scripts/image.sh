#!/usr/bin/env bash
# Builds container images into dist/, each as an OCI archive, which `podman load -i`, `skopeo copy
# oci-archive:FILE docker://REGISTRY/NAME` and most registries' tools read.
#   muster-image.tar            from scratch: muster (also as torchrun), musterd, and Debian's libc,
#                               libm and loader
#   muster-train-image.tar      a minimal Debian for muster-train, with muster, torchrun and
#                               muster-train
#   muster-torchrun-image.tar   the same, for jobs that are written for torchrun and have no token:
#                               in it MUSTER_INSECURE=1, so anyone who can reach the job's port can
#                               join, as with torchrun
#   scripts/image.sh                    all
#   scripts/image.sh --no-trainer       the first alone
#   scripts/image.sh --output FOLDER    not into dist/
# The same commit gives the same muster-image.tar whenever it is built with the same Debian
# packages: its date is the commit's. For the others this is untested.
# Needs no registry and no daemon; needs root, scripts/setup.sh, and
#   apt-get install --no-install-recommends buildah golang-github-containers-image mmdebstrap
set -euo pipefail
# FOLDER is relative to the caller's directory.
called_from=$PWD
cd "$(dirname "$0")/.."
output=$PWD/dist
trainer=1
while [ $# -gt 0 ]; do
  case $1 in
    --no-trainer) trainer= ;;
    --output)
      [ $# -ge 2 ] || { echo "image: --output names no folder; name one" >&2; exit 2; }
      output=$(cd "$called_from" && realpath -m "$2")
      shift
      ;;
    *)
      echo "image: unknown argument '$1'; there are --no-trainer and --output FOLDER" >&2
      exit 2
      ;;
  esac
  shift
done
[ "$(id -u)" = 0 ] || { echo "image: an image's files are root's, and only root can make them; run it as root" >&2; exit 2; }
for tool in buildah ${trainer:+mmdebstrap}; do
  command -v "$tool" >/dev/null || {
    echo "image: $tool is missing; apt-get install buildah golang-github-containers-image mmdebstrap" >&2
    exit 2
  }
done

number=$(sed -n 's/.*kVersion\[\] = "\(.*\)";/\1/p' base/version.h)
export SOURCE_DATE_EPOCH LC_ALL=C.UTF-8 TZ=UTC
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
umask 022
bazel build --config=opt //launcher:muster //rendezvous:musterd ${trainer:+//trainer:muster-train}
bin=$(bazel info --config=opt bazel-bin 2>/dev/null)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$output"
# Storage of its own, which needs no kernel support and leaves nothing behind.
images() { buildah --log-level error --root "$scratch/storage" --runroot "$scratch/run" --storage-driver vfs "$@"; }

# install_programs FOLDER PROGRAM...: as in the packages.
install_programs() {
  local folder=$1 program
  shift
  mkdir -p "$folder/usr/bin"
  for program in "$@"; do
    strip --remove-section=.comment --remove-section=.note -o "$folder/usr/bin/${program##*/}" "$bin/$program"
  done
  ln -s muster "$folder/usr/bin/torchrun"
  mkdir -p "$folder/usr/share/doc/muster"
  cp LICENSE "$folder/usr/share/doc/muster/copyright"
}

# packed FOLDER: as a reproducible tar.
packed() {
  tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --format=gnu -C "$1" .
}

# finish CONTAINER NAME: writes the archive, and its digest to stdout. Goes through an OCI folder,
# as buildah's own archive contains the time.
finish() {
  local container=$1 name=$2
  images commit --quiet --format oci --timestamp "$SOURCE_DATE_EPOCH" "$container" "$name" >/dev/null
  images push --quiet "$name" "oci:$scratch/$name:localhost/$name:$number"
  packed "$scratch/$name" >"$output/$name-image.tar"
  rm -rf "${scratch:?}/$name"
  echo "image: $name:$number $(images inspect --type image --format '{{.FromImageDigest}}' "$name")," \
    "$(stat -c %s "$output/$name-image.tar") bytes"
}

describe() {
  images config --author "Muster developers" --label org.opencontainers.image.title="$2" \
    --label org.opencontainers.image.version="$number" --label org.opencontainers.image.revision="$(git rev-parse HEAD)" \
    --label org.opencontainers.image.licenses=Apache-2.0 --created-by "scripts/image.sh" "$1"
}

# From scratch. A statically linked glibc cannot resolve hosts by the machine's configuration, so
# the loader, libc and libm of the build machine come along.
files=$scratch/nothing
install_programs "$files" launcher/muster rendezvous/musterd
for library in $(ldd "$bin/launcher/muster" "$bin/rendezvous/musterd" | grep -o '/[^ :]*' | grep -v "^$bin" | sort -u); do
  mkdir -p "$files$(dirname "$library")"
  cp --dereference "$library" "$files$library"
done
mkdir -p "$files"/{dev,etc,proc,root,run,sys,tmp,var/tmp} "$files/usr/share/doc/libc6"
chmod 1777 "$files/tmp" "$files/var/tmp"
cp /usr/share/doc/libc6/copyright "$files/usr/share/doc/libc6/"
printf 'root:x:0:0:root:/root:\nnobody:x:65534:65534:nobody:/nonexistent:\n' >"$files/etc/passwd"
printf 'root:x:0:\nnogroup:x:65534:\n' >"$files/etc/group"
# A pod's own name is in its /etc/hosts before DNS knows it.
echo 'hosts: files dns' >"$files/etc/nsswitch.conf"
packed "$files" >"$scratch/nothing.tar"
container=$(images from scratch)
images add --quiet "$container" "$scratch/nothing.tar" / >/dev/null
describe "$container" muster
images config --env PATH=/usr/bin --entrypoint '["/usr/bin/muster"]' --cmd --help "$container"
finish "$container" muster
[ -n "$trainer" ] || exit 0

# Debian with the packages of muster-train's libraries, which pull in the rest.
mapfile -t libraries < <(readelf -d "$bin/trainer/muster-train" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
mapfile -t paths < <(ldd "$bin/trainer/muster-train" | awk -v names="${libraries[*]}" \
  'BEGIN { split(names, list, " "); for (i in list) wanted[list[i]] = 1 } $1 in wanted && $3 ~ /^\// { print $3 }')
# Packages list files by their paths without links, some of them below /lib.
packages=$(for path in "${paths[@]}"; do realpath "$path"; realpath "$path" | sed 's|^/usr||'; done |
  { xargs dpkg-query -S 2>/dev/null || true; } | cut -d: -f1 | sort -u | paste -sd,)
sources=/etc/apt/sources.list.d/debian.sources
[ -e "$sources" ] || sources=/etc/apt/sources.list
suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
options=()
for file in /etc/apt/apt.conf.d/*proxy* /etc/apt/apt.conf.d/*registry*; do
  if [ -e "$file" ]; then options+=("--aptopt=$file"); fi
done
base=$scratch/base
mmdebstrap --quiet --variant=minbase --include="$packages,libopenblas0-pthread" "${options[@]}" \
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
  --customize-hook='rm -f "$1"/etc/apt/apt.conf.d/99mmdebstrap "$1"/etc/resolv.conf "$1"/etc/hostname' \
  --customize-hook="echo 'deb http://deb.debian.org/debian $suite main' >\"\$1\"/etc/apt/sources.list" \
  --customize-hook='rm -rf "$1"/etc/apt/sources.list.d/*' \
  "$suite" "$scratch/base.tar" "$sources"
install_programs "$base" launcher/muster rendezvous/musterd trainer/muster-train
packed "$base" >"$scratch/programs.tar"
for name in muster-train muster-torchrun; do
  container=$(images from scratch)
  images add --quiet "$container" "$scratch/base.tar" / >/dev/null
  images add --quiet "$container" "$scratch/programs.tar" / >/dev/null
  describe "$container" "$name"
  images config --env PATH=/usr/local/bin:/usr/bin:/bin --env LANG=C.UTF-8 --cmd '' "$container"
  images config --cmd '["/bin/sh"]' "$container"
  [ "$name" = muster-train ] || images config --env MUSTER_INSECURE=1 "$container"
  finish "$container" "$name"
  images rm "$container" >/dev/null
done
