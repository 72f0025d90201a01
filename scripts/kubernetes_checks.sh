#!/usr/bin/env bash
# Runs jobs as Kubernetes would run what `muster manifest` prints: images of scripts/image.sh, each
# pod a podman container in a network namespace of its own, with the names, variables, Secrets,
# probes, back-off and evictions of Kubernetes (see test/kubernetes/job_controller.py); and
# Kubeflow's PyTorchJobs. There is no Kubernetes here.
#   scripts/kubernetes_checks.sh               all; some minutes, and a quarter of an hour more to
#                                              build the images
#   scripts/kubernetes_checks.sh --no-trainer  without muster-train's image
#   scripts/kubernetes_checks.sh CASE...       some of test/kubernetes/kubernetes_checks.py
# Needs root, scripts/setup.sh, and
#   apt-get install --no-install-recommends buildah busybox-static conmon dnsmasq-base \
#     golang-github-containers-image iptables mmdebstrap podman python3-yaml runc
set -euo pipefail
cd "$(dirname "$0")/.."
export PYTHONDONTWRITEBYTECODE=1
trainer=1
if [ "${1-}" = --no-trainer ]; then
  trainer=
  shift
fi
[ "$(id -u)" = 0 ] || { echo "kubernetes_checks: containers with networks of their own need root; run it as root" >&2; exit 2; }
for tool in buildah busybox dnsmasq iptables-restore podman runc ${trainer:+mmdebstrap}; do
  command -v "$tool" >/dev/null || {
    echo "kubernetes_checks: $tool is missing; the head of $0 says what to install" >&2
    exit 2
  }
done
/usr/bin/python3 -c 'import yaml' || { echo "kubernetes_checks: apt-get install python3-yaml" >&2; exit 2; }

# Rebuilt for each new commit.
images=${TMPDIR:-/var/tmp}/muster-images
commit=$(git rev-parse HEAD)${trainer:+-trainer}
if [ "$(cat "$images/.commit" 2>/dev/null)" != "$commit" ]; then
  rm -rf "$images"
  mkdir -p "$images"
  scripts/image.sh --output "$images" $([ -n "$trainer" ] || echo --no-trainer)
  echo "$commit" >"$images/.commit"
fi
bin=$(bazel info --config=opt bazel-bin 2>/dev/null)
/usr/bin/python3 test/kubernetes/kubernetes_checks.py "$bin/launcher/muster" "$images" "$(command -v busybox)" "$@"
