#!/bin/sh
# The cases of test/chaos/ci.py, once each. Passes with a message if network namespaces are not
# permitted.
set -u
MUSTER=launcher/muster MUSTERD=rendezvous/musterd
CHAOS_WORKER=test/chaos/chaos_worker CLOCK_SKEW=test/chaos/libclock_skew.so
IDENTITY_PROGRAM=test/chaos/identity_program
PYTHONDONTWRITEBYTECODE=1
export MUSTER MUSTERD CHAOS_WORKER CLOCK_SKEW IDENTITY_PROGRAM PYTHONDONTWRITEBYTECODE
/usr/bin/python3 test/chaos/chaos.py --subset ci --json "${TEST_UNDECLARED_OUTPUTS_DIR:-.}/faults.json"
code=$?
[ $code -eq 77 ] && exit 0
exit $code
