"""One run of fleet_load with a fresh musterd that listens at all addresses, for many_hosts.sh. Prints what it has told,
and the daemon's turns: {"le": count}, each bucket with those below it.

usage: fleet_once.py AGENTS HOSTS SECONDS [secure] [kill]
"""

import contextlib
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


def main() -> None:
    agents, hosts, seconds = sys.argv[1:4]
    secure, kills = "secure" in sys.argv[4:], "kill" in sys.argv[4:]
    daemon_servers.allow_descriptors(daemon_servers.MANY_DESCRIPTORS)
    with contextlib.ExitStack() as running:
        state = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="muster-bench-"))) if kills else None
        daemon = running.enter_context(daemon_servers.musterd(state, secure, listen="0.0.0.0:0", page=True))
        told = json.loads(tools.run([
            tools.built("test/bench/daemon/fleet_load"), *daemon.flags(),
            f"--daemon-pid={daemon.serving() if kills else daemon.pid}", f"--agents={agents}", f"--hosts={hosts}", f"--seconds={seconds}", *(["--kill-daemon"] if kills else []),
        ]).output)
        print(json.dumps({**told, "turns": _turns(daemon)}))


main()
