#!/usr/bin/env bash
# Agents of this version with the daemon of another, and vice versa: the faults of every test run
# (test/chaos/ci.py), each of which starts, fails and restarts a job. Needs root, or user
# namespaces.
#
#   scripts/compat/versions.sh COMMIT         builds the other version from a commit: some minutes
#   scripts/compat/versions.sh FOLDER         uses `muster` and `musterd` from a folder
#   scripts/compat/versions.sh COMMIT F1 F12  these cases of the matrix instead (scripts/chaos.sh --list)
#
# MUSTER_BIN names a folder with this version's programs, instead of building them.
set -euo pipefail
cd "$(dirname "$0")/../.."

other=${1:?which version? name a commit, or a folder with muster and musterd}
shift
cases=("$@")
[ $# -gt 0 ] || cases=(--subset ci)
scratch=$(mktemp -d)
trap 'git worktree remove --force "$scratch/source" 2>/dev/null || true; rm -rf "$scratch"' EXIT

# build FOLDER: builds the working directory, and copies the result there
build() {
  bazel build --config=opt --experimental_convenience_symlinks=ignore //launcher:muster //rendezvous:musterd
  local built
  built=$(bazel info --config=opt bazel-bin)
  mkdir -p "$1"
  cp "$built/launcher/muster" "$built/rendezvous/musterd" "$1/"
}

if [ ! -d "$other" ]; then
  git worktree add --detach "$scratch/source" "$other" >/dev/null
  [ ! -f user.bazelrc ] || cp user.bazelrc "$scratch/source/"
  (cd "$scratch/source" && build "$scratch/other" && bazel shutdown)
  other=$scratch/other
fi
ours=${MUSTER_BIN-}
if [ -z "$ours" ]; then
  build "$scratch/ours"
  ours=$scratch/ours
fi
bazel build //test/chaos:chaos_worker //test/chaos:libclock_skew.so //test/chaos:identity_program

run() {
  echo "versions: agents are $("$1/muster" --version | head -n 1), the daemon is $("$2/musterd" --version | head -n 1)"
  MUSTER=$1/muster MUSTERD=$2/musterd PYTHONDONTWRITEBYTECODE=1 CHAOS_WORKER=bazel-bin/test/chaos/chaos_worker \
    CLOCK_SKEW=bazel-bin/test/chaos/libclock_skew.so IDENTITY_PROGRAM=bazel-bin/test/chaos/identity_program \
    /usr/bin/python3 test/chaos/chaos.py "${cases[@]}"
}
failed=0
run "$ours" "$other" || failed=1
run "$other" "$ours" || failed=1
exit $failed
