"""What `muster manifest` prints, run as Kubernetes would run it: each pod is a container of podman's in a network namespace
of its own, and what a Job, a headless Service, a Secret and a NetworkPolicy mean is in job_controller.py and pod.py.

usage: kubernetes_checks.py MUSTER IMAGES BUSYBOX [CASE...]     IMAGES: the folder with what scripts/image.sh builds
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "chaos"))
sys.path.append(str(Path(__file__).resolve().parent))

import isolation

_SKIPPED = 77

# The image from nothing has no shell; it comes with a claim, as data would.
_WORKER = """#!/tools/busybox sh
say() { echo "$1 rank=$RANK world=$WORLD_SIZE index=$JOB_COMPLETION_INDEX pod=$(/tools/busybox cat /etc/hostname 2>/dev/null) \
round=$MUSTER_ROUND words=$*" >> /work/events; }
trap 'say saved; exit 0' TERM
say started "$@"
while [ ! -e /work/end ]; do /tools/busybox sleep 0.1; done
say done
"""


def _expect(holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(what)


class Typed:
    """What a user types, in a world that has claims, images and a cluster."""

    def __init__(self, muster: str, world):
        self.muster, self.world = muster, world
        self.work = world.claims / "work"
        self.next_number = 1
        self.controllers: list = []

    def fresh(self) -> None:
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir()

    def manifest(self, *flags: str, image: str = "localhost/muster:0.1.0",
                 run: tuple[str, ...] = ("--nproc-per-node=2", "--no-python", "/tools/worker")) -> list[dict]:
        import yaml

        done = subprocess.run([self.muster, "manifest", "--name=train", f"--image={image}", "--volume=work:/work",
                               "--volume=tools:/tools", *flags, "--", *run], capture_output=True, text=True, check=False)
        _expect(done.returncode == 0, done.stderr)
        return list(yaml.safe_load_all(done.stdout))

    def create(self, documents: list[dict], **more):
        from job_controller import Controller

        controller = Controller(self.world, documents, first_number=self.next_number, **more)
        self.next_number += 12
        self.controllers.append(controller)
        return controller

    def events(self, what: str) -> list[tuple[int, int, int]]:
        """(rank, index, world size) of each that is written down so far."""
        path = self.work / "events"
        text = path.read_text() if path.exists() else ""
        return [(int(m[1]), int(m[3]), int(m[2])) for m in
                re.finditer(rf"^{what} rank=(\d+) world=(\d+) index=(\d+) ", text, re.MULTILINE)]

    def end(self) -> None:
        (self.work / "end").write_text("")


_THREE = [(0, 0, 6), (1, 0, 6), (2, 1, 6), (3, 1, 6), (4, 2, 6), (5, 2, 6)]


def _started(typed: Typed, *flags: str, **more):
    job = typed.create(typed.manifest("--nodes=3", *flags, **more))
    job.run_until(lambda: job.all_ready() and len(typed.events("started")) == 6, "not all pods are ready")
    _expect(sorted(typed.events("started")) == _THREE, f"{typed.events('started')}")
    return job


def _finish(typed: Typed, job, failures: int = 0) -> None:
    typed.end()
    _expect(job.run_to_the_end() == "Complete", f"{job.outcome}: {job.tell()}")
    _expect(job.failures == failures, f"{job.failures} pods' failures were counted: {job.tell()}")


def pods_find_each_other_and_are_ready(typed: Typed) -> None:
    job = _started(typed)
    pod = job.active[1]
    _expect(pod.probe("livenessProbe"), "not alive")
    _finish(typed, job)
    _expect(sorted(typed.events("done")) == _THREE, f"{typed.events('done')}")


def an_evicted_pod_is_replaced_and_the_new_one_takes_its_rank(typed: Typed) -> None:
    job = _started(typed, "--grace=20")
    before = job.active[1]
    job.evict(1)
    job.run_until(lambda: not before.running(), "the evicted pod did not end")
    _expect({rank for rank, _, _ in typed.events("saved")} >= {2, 3}, f"who saved: {typed.events('saved')}")
    job.run_until(lambda: job.all_ready() and len(typed.events("started")) == 12, "the new pod did not join")
    _expect(job.active[1].address != before.address, "it is the old pod")
    _expect(sorted(typed.events("started")) == sorted(_THREE * 2), f"{typed.events('started')}")
    _expect([pod.index for pod in job.pods] == [0, 1, 2, 1], "other pods were replaced as well")
    _finish(typed, job)


def the_pod_where_nodes_meet_is_evicted(typed: Typed) -> None:
    job = _started(typed)
    job.evict(0)
    job.run_until(lambda: job.all_ready() and len(typed.events("started")) == 12, "the job did not begin again")
    _expect(sorted(typed.events("started")) == sorted(_THREE * 2), f"{typed.events('started')}")
    _finish(typed, job)


def a_pod_that_is_killed_counts_and_is_replaced(typed: Typed) -> None:
    job = _started(typed)
    job.active[2].kill(signal.SIGKILL)
    job.run_until(lambda: job.all_ready() and len(typed.events("started")) == 12, "the new pod did not join")
    _expect(sorted(typed.events("started")) == sorted(_THREE * 2), f"{typed.events('started')}")
    _finish(typed, job, failures=1)


def a_pod_that_stands_still_is_found_by_its_probe(typed: Typed) -> None:
    job = _started(typed, "--grace=1")
    before = job.active[1]
    before.kill(signal.SIGSTOP)
    job.run_until(lambda: not before.running(), "the kubelet did not end it", 180)
    _expect(before.failed_probes == 6, f"{before.failed_probes} probes have failed")
    job.run_until(lambda: job.all_ready() and len(typed.events("started")) == 12, "the new pod did not join")
    _finish(typed, job, failures=1)


def without_back_off_a_killed_pod_ends_the_job(typed: Typed) -> None:
    job = _started(typed, "--backoff=0")
    job.active[2].kill(signal.SIGKILL)
    _expect("BackoffLimitExceeded" in job.run_to_the_end(), job.outcome)


def a_worker_that_fails_ends_the_job(typed: Typed) -> None:
    job = typed.create(typed.manifest("--nodes=2", run=("--no-python", "/tools/busybox", "sh", "-c",
                                                       'test $RANK != 1 || exit 7; /tools/busybox sleep 60')))
    outcome = job.run_to_the_end()
    _expect(re.fullmatch(r"Failed: train-[01]-\d+ exited with 1", outcome) is not None, outcome)
    _expect(any("rank 1 exited with code 7" in pod.said() for pod in job.pods), job.tell())
    _expect(len(job.pods) == 2, "pods were replaced")


def a_job_runs_with_as_many_pods_as_there_is_room_for(typed: Typed) -> None:
    job = typed.create(typed.manifest("--nodes=2:3", run=("--rdzv-conf=last_call_timeout=1", "--no-python", "/tools/worker")))
    job.unschedulable = {1}
    job.run_until(lambda: len(typed.events("started")) == 2, "two pods did not begin")
    _expect({(index, world) for _, index, world in typed.events("started")} == {(0, 2), (2, 2)}, f"{typed.events('started')}")
    _finish(typed, job)
    _expect(len(job.pods) == 2, "a pod was started in vain")


def a_stranger_in_the_cluster_reaches_no_port(typed: Typed) -> None:
    from cluster import Host

    job = _started(typed)
    stranger = Host("stranger", "10.78.0.200")
    for port in (29400, 29480):
        tried = subprocess.run(["ip", "netns", "exec", stranger.name, "bash", "-c",
                                f"timeout 2 bash -c '</dev/tcp/{job.active[0].address}/{port}'"], capture_output=True, check=False)
        _expect(tried.returncode != 0, f"a stranger reached port {port}")
    # The node, whose kubelet asks, does: so somebody listens.
    for port in (29400, 29480):
        socket.create_connection((job.active[0].address, port), timeout=10).close()
    _finish(typed, job)


def a_secret_that_is_there_already_is_used(typed: Typed) -> None:
    token = typed.world.folder / "my.token"
    subprocess.run([typed.muster, "token", "new", str(token)], check=True, capture_output=True)
    typed.world.secrets["team", "mine"] = {"token": token.read_text()}
    documents = typed.manifest("--nodes=2", "--secret=mine", "--namespace=team")
    _expect([d["kind"] for d in documents] == ["Service", "NetworkPolicy", "Job"], "a Secret is printed")
    job = typed.create(documents)
    job.run_until(lambda: len(typed.events("started")) == 4, "the pods did not meet")
    _finish(typed, job)


def pods_need_not_run_as_root(typed: Typed) -> None:
    job = _started(typed, "--user=1000")
    _expect((typed.work / "events").stat().st_uid == 1000, "workers ran as another user")
    _finish(typed, job)


def words_reach_workers_as_they_were_typed(typed: Typed) -> None:
    job = typed.create(typed.manifest("--nodes=1", run=("--no-python", "/tools/worker", "$(JOB_COMPLETION_INDEX) $$ 'a  b'")))
    job.run_until(lambda: len(typed.events("started")) == 1, "it did not begin")
    _expect("words=started $(JOB_COMPLETION_INDEX) $$ 'a  b'\n" in (typed.work / "events").read_text(),
            (typed.work / "events").read_text())
    _finish(typed, job)


def training_goes_on_after_an_eviction(typed: Typed) -> None:
    """muster-train in its image: the evicted pod's successor and the others go on from the last checkpoint."""
    run = ("--nproc-per-node=1", "--no-python", "muster-train", "--model=gpt", "--data=/usr/share/common-licenses/GPL-3",
           "--layers=1", "--width=32", "--heads=1", "--context=32", "--threads=1", "--batch-size=8", "--epochs=20",
           "--max-steps=2400", "--no-eval", "--checkpoint-dir=/work/gpl", "--checkpoint-every=5")
    job = typed.create(typed.manifest("--nodes=2", image="localhost/muster-train:0.1.0", run=run))
    job.run_until(lambda: any(path.is_file() for path in (typed.work / "gpl").rglob("*")) and job.all_ready(),
                  "no checkpoint is written", 180)
    job.evict(1)
    _expect(job.run_to_the_end(300) == "Complete", f"{job.outcome}: {job.tell()}")
    _expect("resum" in job.tell() and len(job.pods) > 2, job.tell())


def the_command_in_readme_runs_as_it_stands(typed: Typed) -> None:
    import yaml

    readme = (Path(__file__).resolve().parent.parent.parent / "README.md").read_text()
    command = re.search(r"^    (muster manifest .*muster-train.*)$", readme, re.MULTILINE)[1]
    # What stands for kubectl hands the manifest to this cluster.
    tools = typed.world.folder / "bin"
    tools.mkdir()
    (tools / "kubectl").write_text(f'#!/bin/sh\n[ "$*" = "create -f -" ] && cat > {tools}/created\n')
    (tools / "kubectl").chmod(0o755)
    (tools / "muster").symlink_to(Path(typed.muster).resolve())
    subprocess.run(["sh", "-ec", command], env={"PATH": f"{tools}:{os.environ['PATH']}"}, check=True)
    job = typed.create(list(yaml.safe_load_all((tools / "created").read_text())))
    _expect(job.run_to_the_end(180) == "Complete", f"{job.outcome}: {job.tell()}")
    _expect(len(job.pods) == 2, job.tell())


def _pytorch_job(typed: Typed, name: str):
    import yaml
    from pytorch_job import PyTorchJob

    job = PyTorchJob(typed.world, yaml.safe_load((Path(__file__).resolve().parent / "testdata" / name).read_text()), typed.next_number)
    typed.next_number += 12
    typed.controllers.append(job)
    return job


def a_pytorch_job_with_a_master_runs_unchanged(typed: Typed) -> None:
    job = _pytorch_job(typed, "pytorch_job.yaml")
    codes = job.run_to_the_end()
    _expect(codes == [0, 0], f"{codes}: {job.tell()}")
    _expect("ranks 4" in job.tell() or "4 ranks" in job.tell(), f"it is not known that four ranks trained: {job.tell()}")


def an_elastic_pytorch_job_runs_unchanged(typed: Typed) -> None:
    job = _pytorch_job(typed, "pytorch_job_elastic.yaml")
    codes = job.run_to_the_end()
    _expect(codes == [0, 0], f"{codes}: {job.tell()}")
    said = sorted(re.findall(r"rank \d of \d", job.tell()))
    _expect(said == [f"rank {i} of 4" for i in range(4)], f"{said}: {job.tell()}")


CASES: list[Callable] = [
    pods_find_each_other_and_are_ready,
    an_evicted_pod_is_replaced_and_the_new_one_takes_its_rank,
    the_pod_where_nodes_meet_is_evicted,
    a_pod_that_is_killed_counts_and_is_replaced,
    a_pod_that_stands_still_is_found_by_its_probe,
    without_back_off_a_killed_pod_ends_the_job,
    a_worker_that_fails_ends_the_job,
    a_job_runs_with_as_many_pods_as_there_is_room_for,
    a_stranger_in_the_cluster_reaches_no_port,
    a_secret_that_is_there_already_is_used,
    pods_need_not_run_as_root,
    words_reach_workers_as_they_were_typed,
]
# With an image of half a gigabyte.
TRAINER_CASES: list[Callable] = [
    the_command_in_readme_runs_as_it_stands,
    a_pytorch_job_with_a_master_runs_unchanged,
    an_elastic_pytorch_job_runs_unchanged,
    training_goes_on_after_an_eviction,
]


def main(muster: str, images: str, busybox: str, *wanted: str) -> int:
    from job_controller import bridge
    from pod import World, podman_of

    if (reason := isolation.enter()) is not None:
        print(f"no network namespaces here: {reason}", file=sys.stderr)
        return _SKIPPED
    folder = Path(isolation.SCRATCH)
    bridge()
    podman, environment = podman_of(folder)
    world = World(folder, podman, environment, folder / "claims")
    tools = world.claims / "tools"
    tools.mkdir(parents=True)
    shutil.copy(busybox, tools / "busybox")
    (tools / "worker").write_text(_WORKER)
    (tools / "worker").chmod(0o755)
    for archive in sorted(Path(images).glob("*-image.tar")):
        subprocess.run([*podman, "pull", "--quiet", f"oci-archive:{archive}"], env=environment, check=True, capture_output=True)
    typed = Typed(muster, world)
    failed = 0
    has_trainer = (Path(images) / "muster-torchrun-image.tar").exists()
    for case in CASES + (TRAINER_CASES if has_trainer else []):
        if wanted and case.__name__ not in wanted:
            continue
        typed.fresh()
        try:
            case(typed)
            print(f"ok      {case.__name__}", flush=True)
        except Exception as error:  # Whatever it is, the other cases say more.
            failed += 1
            print(f"FAILED  {case.__name__}: {error}", flush=True)
        for controller in typed.controllers:
            controller.close()
        typed.controllers.clear()
    return 1 if failed else 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    sys.exit(main(*sys.argv[1:]))
