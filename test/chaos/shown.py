"""What is shown of a job to who looks: by `muster status`, on the page, in the metrics and by `muster replay`."""

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from cluster import Host
from job import HTTP_PORT, PORT, Job
from tools import Tools

_LOOK = str(Path(__file__).parent / "look.py")


@dataclass(frozen=True)
class Shown:
    status: str  # For people.
    job: dict  # Of `muster status --json`.
    page_job: dict  # Of the event stream that the page is drawn from.
    metrics: str


def look(tools: Tools, job: Job) -> Shown:
    """Asks the daemon, which has to be there and to know the job."""
    host = job.cluster.daemon
    ask = [tools.muster, "status", f"--rdzv-endpoint={host.address}:{PORT}", "--rdzv-id=chaos"]
    token = _run(job, host, [tools.muster, "token", "metrics", str(job.token)]).split()[-1]
    seen = json.loads(_run(job, host, [sys.executable, _LOOK, str(HTTP_PORT), token]))
    return Shown(
        status=_run(job, host, ask),
        job=json.loads(_run(job, host, [*ask, "--json"]))[0],
        page_job=next((each for each in seen["jobs"] if each["run_id"] == "chaos"), {}),
        metrics=seen["metrics"],
    )


def endings(job: dict) -> list[tuple[str, str]]:
    """What has come to an end, by its metric's label and in words: rounds, and the job itself."""
    rounds = [(each["end"], each["reason"]) for each in job.get("rounds", []) if each["end"]]
    return rounds + ([(job["outcome"], job["message"])] if job.get("outcome") else [])


def missing(shown: Shown | None, replay: str, what: str, counted: bool) -> list[str]:
    """Where `what`, a part of why something ended, is not shown. `counted`: the daemon is the one that saw it."""
    if shown is None:
        return [] if what in replay else ["`muster replay`"]
    lacks = []
    if what not in shown.status:
        lacks.append("`muster status`")
    on_page = [label for label, reason in endings(shown.page_job) if what in reason]
    if not on_page:
        lacks.append("the page")
    if counted and not any(re.search(rf'^muster_(rounds_over|jobs_ended)_total\{{\w+="{label}"\}} [1-9]', shown.metrics,
                                     re.MULTILINE) for label in on_page):
        lacks.append("the metrics")
    if what not in replay:
        lacks.append("`muster replay`")
    return lacks


def alerts(job: dict) -> list[str]:
    """What is wrong with ranks whose round goes on, in words."""
    return [f"rank {each['rank']} on host {node['host']} {each['what']}"
            for node in job.get("nodes", []) for each in node["alerts"]]


def missing_trouble(shown: Shown, kind: str, what: str) -> list[str]:
    """Where `what`, a part of what is wrong with a rank, is not shown, or does not count as `kind`."""
    lacks = []
    if what not in shown.status or not any(what in each for each in alerts(shown.job)):
        lacks.append("`muster status`")
    if not any(what in each for each in alerts(shown.page_job)):
        lacks.append("the page")
    if not re.search(rf'^muster_job_ranks_in_trouble\{{run_id="chaos",trouble="{kind}"\}} [1-9]', shown.metrics,
                     re.MULTILINE):
        lacks.append("the metrics")
    return lacks


def replayed(tools: Tools, job: Job) -> str:
    """What `muster replay` makes of the event logs of the job's agents."""
    logs = [agent.folder / "events.json" for agent in job.agents.values() if not agent.stranger]
    there = [str(log) for log in logs if log.exists() and log.stat().st_size > 0]
    return _run(job, job.cluster.daemon, [tools.muster, "replay", *there]) if there else ""


def _run(job: Job, host: Host, argv: list[str]) -> str:
    done = subprocess.run([*host.inside(), *argv], env=job.environment, capture_output=True, text=True, check=False,
                          timeout=30)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(argv[:2])} exited with {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout
