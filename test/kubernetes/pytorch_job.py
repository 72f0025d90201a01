"""A Kubeflow PyTorchJob, as the training operator runs it (pkg/controller.v1/pytorch: envvar.go, master.go, elastic.go): a
pod and a headless Service of the same name for each replica, and the variables that torchrun reads."""

import time

from cluster_dns import ClusterDns
from pod import Pod, World
from processes import wait_for


class PyTorchJob:
    """Runs from the start."""

    def __init__(self, world: World, manifest: dict, first_number: int, namespace: str = "default"):
        self.name = manifest["metadata"]["name"]
        self.spec = manifest["spec"]
        self._dns = ClusterDns(world, first_number)
        self.pods: list[Pod] = []
        replicas = self.spec["pytorchReplicaSpecs"]
        self.total = sum(replica["replicas"] for replica in replicas.values())
        for kind in sorted(replicas):  # Master before Worker
            for index in range(replicas[kind]["replicas"]):
                pseudo = {"metadata": {"name": f"{self.name}-{kind.lower()}"}, "spec": {"template": replicas[kind]["template"]}}
                rank = index + (1 if kind == "Worker" and "Master" in replicas else 0)
                pod = Pod(world, pseudo, index, first_number + len(self.pods), namespace, self._variables(rank))
                self.pods.append(pod)
                self._dns.publish(f"{pod.hostname}.{namespace}.svc.{world.domain}", pod.address)

    def _variables(self, rank: int) -> dict[str, str]:
        replicas = self.spec["pytorchReplicaSpecs"]
        workers = str(self.spec.get("nprocPerNode", 1))
        given = {"PYTHONUNBUFFERED": "1"}
        if "Master" in replicas:
            port = str(self._port(replicas["Master"]))
            host = f"{self.name}-master-0"
            given |= {"MASTER_PORT": port, "PET_MASTER_PORT": port, "MASTER_ADDR": host, "PET_MASTER_ADDR": host,
                      "WORLD_SIZE": str(self.total * int(workers)), "RANK": str(rank), "PET_NPROC_PER_NODE": workers,
                      "PET_NODE_RANK": str(rank)}
        if (elastic := self.spec.get("elasticPolicy")) is None:
            return given | {"PET_NNODES": str(self.total)}
        given |= {"PET_RDZV_ENDPOINT": f"{self.name}-worker-0:{self._port(replicas['Worker'])}",
                  "PET_RDZV_BACKEND": elastic.get("rdzvBackend", "c10d"),
                  "PET_NNODES": f"{elastic['minReplicas']}:{elastic['maxReplicas']}"}
        for field, variable in (("maxRestarts", "PET_MAX_RESTARTS"), ("nProcPerNode", "PET_NPROC_PER_NODE"), ("rdzvId", "PET_RDZV_ID")):
            if field in elastic:
                given[variable] = str(elastic[field])
        return given

    @staticmethod
    def _port(replica: dict) -> int:
        ports = replica["template"]["spec"]["containers"][0].get("ports", [])
        # The operator's default.
        return next((port["containerPort"] for port in ports if port["name"] == "pytorchjob-port"), 23456)

    def run_to_the_end(self, seconds: float = 120) -> list[int]:
        """The exit code of each pod."""
        def ended() -> bool:
            self._dns.update()
            time.sleep(0.05)
            return not any(pod.running() for pod in self.pods)

        wait_for(ended, self.tell, seconds)
        return [pod.exit_code() for pod in self.pods]

    def tell(self) -> str:
        return "\n".join(f"--- {pod.name}:\n{pod.said()[-2000:]}" for pod in self.pods)

    def close(self) -> None:
        for pod in self.pods:
            if pod.running():
                pod.kill(9)
        self._dns.close()
