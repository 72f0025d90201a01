#!/usr/bin/env bash
# Builds what users install into dist/: muster, musterd and muster-train as Debian packages, muster
# and musterd in a tar for any Linux, their bills of materials (SPDX), and checksums.
#   scripts/package.sh                    all
#   scripts/package.sh --no-trainer       without muster-train, which needs LibTorch
#   scripts/package.sh --output FOLDER    not into dist/
# The same commit gives the same bytes, wherever and whenever it is built with the same Debian
# packages; so it needs a checkout without changes. Version and dates are the commit's. Needs
# scripts/setup.sh, and
#   apt-get install bash-completion debhelper help2man lintian strip-nondeterminism
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
      [ $# -ge 2 ] || { echo "package: --output names no folder; name one" >&2; exit 2; }
      output=$(cd "$called_from" && realpath -m "$2")
      shift
      ;;
    *)
      echo "package: unknown argument '$1'; there are --no-trainer and --output FOLDER" >&2
      exit 2
      ;;
  esac
  shift
done
for tool in dh help2man lintian strip-nondeterminism; do
  command -v "$tool" >/dev/null || {
    echo "package: $tool is missing; apt-get install bash-completion debhelper help2man lintian strip-nondeterminism" >&2
    exit 2
  }
done
[ -z "$(git status --porcelain)" ] || {
  echo "package: this checkout has changes, so nobody could build the same again; commit them first" >&2
  exit 2
}

# 0.1.0 for the commit with the tag v0.1.0; before it, a lower version that grows with the commits.
number=$(sed -n 's/.*kVersion\[\] = "\(.*\)";/\1/p' base/version.h)
export SOURCE_DATE_EPOCH LC_ALL=C.UTF-8 TZ=UTC
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
version=$number
if [ "$(git tag --points-at HEAD --list "v$number")" = "" ]; then
  version="$number~git$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d.%H%M%S).$(git rev-parse --short=8 HEAD)"
fi
umask 022

targets=(//launcher:muster //rendezvous:musterd ${trainer:+//trainer:muster-train})
bazel build --config=opt "${targets[@]}"
bin=$(bazel info --config=opt bazel-bin 2>/dev/null)
execution_root=$(bazel info execution_root 2>/dev/null)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tree=$scratch/muster-$number
made=$tree/prebuilt
mkdir -p "$made"/{bin,sbom,man,man-train,completion}
programs=(launcher/muster rendezvous/musterd ${trainer:+trainer/muster-train})
for program in "${programs[@]}"; do
  # As dh_strip does, so that the tar, the packages and the SBOM refer to the same program.
  strip --remove-section=.comment --remove-section=.note -o "$made/bin/${program##*/}" "$bin/$program"
done

packaging/man_pages.sh "$made/man" "$number" "$bin/launcher/muster" "$bin/rendezvous/musterd" \
  ${trainer:+"$bin/trainer/muster-train"}
[ -z "$trainer" ] || mv "$made/man/muster-train.1" "$made/man-train/"
"$bin/launcher/muster" run --print-completion bash >"$made/completion/muster.bash"
"$bin/launcher/muster" run --print-completion zsh >"$made/completion/_muster"
"$bin/launcher/muster" run --print-completion fish >"$made/completion/muster.fish"

# headers FOLDER...: third-party libraries that these sources include.
headers() {
  git grep -hoE '^#include <[a-zA-Z0-9_]+/[^>]+>' -- "$@" | sed 's/^#include <\(.*\)>/\1/' | sort -u |
    while read -r header; do
      case $header in sys/* | linux/* | netinet/* | arpa/* | net/* | sanitizer/* | bits/* | asm/*) continue ;; esac
      if [ -e "/usr/include/$header" ]; then echo "/usr/include/$header"; fi
    done
}
for program in "${programs[@]}"; do
  name=${program##*/}
  # Links once more, for the linker's map of the archives that it uses.
  params=$(ls "$bin/$program"-*.params | head -n 1)
  (cd "$execution_root" && gcc "@$params" -Wl,--trace -o "$scratch/linked") >"$scratch/$name.trace"
  folders=(base proto rendezvous worker launcher third_party/system)
  [ "$name" != muster-train ] || folders=(base worker trainer third_party/torch)
  headers "${folders[@]}" |
    packaging/sbom.py "$name" "$version" "$made/bin/$name" "$scratch/$name.trace" >"$made/sbom/$name.spdx.json"
done

cp -r packaging/debian "$tree/debian"
cp packaging/debian/musterd.toml "$made/"
# The publisher of the packages, from Debian's variables.
maintainer="${DEBFULLNAME-Muster developers} <${DEBEMAIL-muster@localhost.localdomain}>"
sed -i "s/^Maintainer: .*/Maintainer: $maintainer/" "$tree/debian/control"
[ -n "$trainer" ] || sed -i '/^Package: muster-train$/,$d' "$tree/debian/control"
cat >"$tree/debian/changelog" <<END
muster ($version) unstable; urgency=medium

  * CHANGELOG.md says what is new.

 -- $maintainer  $(date -R -u -d "@$SOURCE_DATE_EPOCH")
END
(cd "$tree" && dpkg-buildpackage --build=binary --no-sign >"$scratch/build.log" 2>&1) || {
  cat "$scratch/build.log" >&2
  exit 1
}
lintian --fail-on error,warning --tag-display-limit 0 --allow-root "$scratch"/*.deb

static=$scratch/muster-$version-linux-$(uname -m)
mkdir -p "$static"/{bin,share/man/man1,share/man/man8,share/muster,share/bash-completion/completions} \
  "$static"/share/{zsh/site-functions,fish/vendor_completions.d}
cp "$made"/bin/muster "$made"/bin/musterd "$static/bin/"
cp "$made"/man/*.1 "$static/share/man/man1/"
cp "$made"/man/*.8 "$static/share/man/man8/"
cp "$made/completion/muster.bash" "$static/share/bash-completion/completions/muster"
cp "$made/completion/_muster" "$static/share/zsh/site-functions/"
cp "$made/completion/muster.fish" "$static/share/fish/vendor_completions.d/"
cp "$made"/sbom/muster.spdx.json "$made"/sbom/musterd.spdx.json packaging/debian/musterd.{toml,socket,sysusers,tmpfiles} \
  "$static/share/muster/"
sed 's|/usr/bin/musterd|/usr/local/bin/musterd|' packaging/debian/musterd.service >"$static/share/muster/musterd.service"
cp LICENSE README.md CHANGELOG.md "$static/"
rm -f "$output"/muster*_amd64.deb "$output"/muster*.tar.gz "$output"/muster*.spdx.json "$output"/SHA256SUMS
mkdir -p "$output"
tar --create --sort=name --owner=0 --group=0 --numeric-owner --mode=go=rX,u+w --mtime="@$SOURCE_DATE_EPOCH" \
  --format=gnu -C "$scratch" "${static##*/}" | gzip --no-name --best >"$output/${static##*/}.tar.gz"
cp "$scratch"/*.deb "$output/"
for sbom in "$made"/sbom/*.json; do cp "$sbom" "$output/$(basename "$sbom" .spdx.json)-$version.spdx.json"; done
(cd "$output" && sha256sum -- *.deb *.tar.gz *.json >SHA256SUMS)
echo "package: $version, in $output"
cat "$output/SHA256SUMS"
