#!/usr/bin/env bash
# Injects the faults of docs/faults.md into real jobs: processes on hosts that are network
# namespaces. Checks what must happen, measures how long it takes, and leaves nothing behind. Needs
# root, or user namespaces.
#
#   scripts/chaos.sh                     every case, up to 20 times: about an hour
#   scripts/chaos.sh --repeat 3 F1 F12   some of them
#   scripts/chaos.sh --subset ci         those in every test run, once: under 5 minutes
#   scripts/chaos.sh --repeat 1000 F8    a thousand agents killed: is any process left?
#   scripts/chaos.sh --group ha --repeat 1000
#                                        three daemons over three members of an etcd, hit by a
#                                        thousand faults
#   scripts/chaos.sh --list              the list of cases
#   scripts/chaos.sh --json FILE --write-docs
#                                        the results for programs, and docs/faults.md from them
#   scripts/chaos.sh --docs-from FILE    docs/faults.md from an earlier run
#
# Runs the binaries built here; MUSTER, MUSTERD, CHAOS_WORKER, CLOCK_SKEW and IDENTITY_PROGRAM name
# others, and for the group CLOCK_JUMPS and STORE_WITNESS.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -z "${MUSTER-}${MUSTERD-}${CHAOS_WORKER-}${CLOCK_SKEW-}${IDENTITY_PROGRAM-}" ]; then
  bazel build //launcher:muster //rendezvous:musterd //test/chaos:chaos_worker //test/chaos:libclock_skew.so \
    //test/chaos:identity_program //test/chaos:clock_jumps //test/linearizability:store_witness
fi
export PYTHONDONTWRITEBYTECODE=1
exec /usr/bin/python3 test/chaos/chaos.py "$@"
