#!/usr/bin/env bash
# Checks that Kubernetes would accept what `muster manifest` prints: by its published schemas, and
# that its API knows every field. Checks test/launcher/remote/testdata/*.yaml, which a test compares
# with the output, or the files in the arguments. Needs node 18 or newer and npm, and once the npm
# registry: the packages stay in a cache.
#   scripts/manifest_checks.sh [FILE...]
set -euo pipefail
cd "$(dirname "$0")/.."
for tool in node npm; do
  command -v "$tool" >/dev/null || { echo "manifest_checks: $tool is missing; apt-get install nodejs npm" >&2; exit 2; }
done

# Both contain Kubernetes' schemas: as validators, and as lists of fields (1.34).
versions="kubernetes-models@4.5.1 @kubernetes/client-node@1.4.0 yaml@2.8.1"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/muster/manifest-checks
if [ "$(cat "$cache/.complete" 2>/dev/null)" != "$versions" ]; then
  rm -rf "$cache"
  mkdir -p "$cache"
  echo '{"private": true}' >"$cache/package.json"
  # No package's scripts are run.
  # shellcheck disable=SC2086
  npm install --prefix "$cache" --no-audit --no-fund --no-package-lock --ignore-scripts --omit=optional --silent $versions
  echo "$versions" >"$cache/.complete"
fi
check() { node test/kubernetes/check_schemas.mjs "$cache" "$@"; }

if [ $# -gt 0 ]; then
  check "$@"
  exit
fi
# First check the checks: each of these mistakes must be found.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for mistake in 's/completions: 4/completions: four/' 's/podReplacementPolicy/podReplacmentPolicy/' 's/path: .healthz$/paht: x/' \
  's/type: DisruptionTarget/typ: DisruptionTarget/' '/clusterIP/s/: .*/: [None]/' 's/containerPort: 29400/containerPort: "29400"/'; do
  sed "$mistake" test/launcher/remote/testdata/four_nodes.yaml >"$scratch/broken.yaml"
  if check "$scratch/broken.yaml" >"$scratch/said"; then
    echo "manifest_checks: a mistake was not found: $mistake" >&2
    exit 1
  fi
done
check test/launcher/remote/testdata/*.yaml
