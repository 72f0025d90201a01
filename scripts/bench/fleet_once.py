"""One run of fleet_load with a fresh musterd that listens at all addresses, for many_hosts.sh. Prints what it has told,
and the daemon's turns: {"le": count}, each bucket with those below it.

usage: fleet_once.py AGENTS HOSTS SECONDS [secure] [kill|stand-by]

kill: it has a state directory and is killed, and its keeper starts another.
stand-by: it has an etcd and is killed for good, and another one, which stands by, goes on.
"""

import contextlib
import functools
import json
import re
import sys
import tempfile
import urllib.request
from pathlib import Path

import daemon_servers
import tools


def _turns(daemon: daemon_servers.Server) -> dict[str, int]:
    request = urllib.request.Request(f"http://{daemon.page}/metrics")
    if daemon.token_file:
        token = tools.run([tools.built("launcher/muster"), "token", "metrics", daemon.token_file]).output.strip()
        request.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(request) as answer:
        text = answer.read().decode()
    return {edge: int(count)
            for edge, count in re.findall(r'muster_loop_turn_seconds_bucket\{le="([^"]+)"\} (\d+)', text)}


def _kept(running: contextlib.ExitStack) -> Path:
    return Path(running.enter_context(tempfile.TemporaryDirectory(prefix="muster-bench-")))


def main() -> None:
    agents, hosts, seconds, *how = sys.argv[1:]
    start = functools.partial(daemon_servers.musterd, secure="secure" in how, listen="0.0.0.0:0", page=True)
    daemon_servers.allow_descriptors(daemon_servers.MANY_DESCRIPTORS)
    with contextlib.ExitStack() as running:
        if "stand-by" in how:
            etcd = running.enter_context(daemon_servers.etcd(_kept(running)))
            leader = running.enter_context(start(etcd_at=etcd.endpoint))
            # The daemon whose metrics are read exists at the end.
            daemon = running.enter_context(start(etcd_at=etcd.endpoint, stands_by_for=leader))
            where = [f"--endpoint={leader.endpoint},{daemon.endpoint}", f"--daemon-pid={leader.pid}", "--kill-daemon"]
        elif "kill" in how:
            daemon = running.enter_context(start(_kept(running)))
            where = [f"--endpoint={daemon.endpoint}", f"--daemon-pid={daemon.serving()}", "--kill-daemon"]
        else:
            daemon = running.enter_context(start())
            where = [f"--endpoint={daemon.endpoint}", f"--daemon-pid={daemon.pid}"]
        told = json.loads(tools.run([
            tools.built("test/bench/daemon/fleet_load"), *daemon.flags()[1:], *where, f"--agents={agents}",
            f"--hosts={hosts}", f"--seconds={seconds}",
        ]).output)
        print(json.dumps({**told, "turns": _turns(daemon)}))


main()
