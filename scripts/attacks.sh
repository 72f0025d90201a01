#!/usr/bin/env bash
# Attacks a running job from a host without a token: hosts are network namespaces. Checks that
# nothing is answered and no run id revealed, that the daemon's memory stays the same, and that the
# job does not notice. Needs root, or user namespaces.
#
#   scripts/attacks.sh                 every attack: about two minutes
#   scripts/attacks.sh B9 'B4 TLS'     some of them
#   scripts/attacks.sh --list          the list of attacks
#   scripts/attacks.sh --write-docs    the table of docs/security.md
#
# Runs the binaries built here; MUSTER, MUSTERD, CHAOS_WORKER, CLOCK_SKEW and IDENTITY_PROGRAM name
# others.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -z "${MUSTER-}${MUSTERD-}${CHAOS_WORKER-}${CLOCK_SKEW-}${IDENTITY_PROGRAM-}" ]; then
  bazel build //launcher:muster //rendezvous:musterd //test/chaos:chaos_worker //test/chaos:libclock_skew.so \
    //test/chaos:identity_program
fi
export PYTHONDONTWRITEBYTECODE=1
exec /usr/bin/python3 test/attacks/attacks.py "$@"
