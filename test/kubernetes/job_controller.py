"""What Kubernetes does with a Job: an index for each pod, a new pod for one that has failed, and an end.

Follows the Job API (batch/v1): Indexed completion, podFailurePolicy, successPolicy, backoffLimit and podReplacementPolicy;
what the manifest does not say and Kubernetes would default, it does not either. Back-off begins with half a second, where
Kubernetes has ten."""

import signal
import subprocess
import time
from pathlib import Path

from cluster_dns import ClusterDns
from pod import KUBELET, Pod, World, secret_data
from processes import wait_for

_FIRST_BACKOFF_S = 0.5


class Controller:
    """A cluster that runs one manifest: `kubectl create -f -`, and what follows."""

    def __init__(self, world: World, documents: list[dict], namespace: str = "default", first_number: int = 1):
        self.world = world
        self.namespace = next((d["metadata"]["namespace"] for d in documents if "namespace" in d["metadata"]), namespace)
        self.job = next(d for d in documents if d["kind"] == "Job")
        self.services = [d for d in documents if d["kind"] == "Service"]
        self.policies = [d for d in documents if d["kind"] == "NetworkPolicy"]
        for secret in (d for d in documents if d["kind"] == "Secret"):
            world.secrets[self.namespace, secret["metadata"]["name"]] = secret_data(secret)
        self.spec = self.job["spec"]
        assert self.spec["completionMode"] == "Indexed" and self.spec["podReplacementPolicy"] == "Failed"
        self.pods: list[Pod] = []  # all that there ever were
        self.active: dict[int, Pod] = {}
        self.succeeded: set[int] = set()
        self.failures = 0  # that count
        self.ignored = 0
        self.outcome = ""  # Complete, Failed: why
        self.unschedulable: set[int] = set()  # indexes for which no node has room
        self._number = first_number
        self._not_before = 0.0
        self._dns = ClusterDns(world, first_number)

    def close(self) -> None:
        for pod in self.active.values():
            pod.kill(signal.SIGKILL)
        self._dns.close()

    def tick(self) -> None:
        """Looks at everything once."""
        self._dns.update()
        for index, pod in list(self.active.items()):
            pod.tend()
            if not pod.running():
                del self.active[index]
                self._ended(index, pod)
        if self.outcome:
            for pod in self.active.values():
                pod.terminate()
            return
        if time.monotonic() < self._not_before:
            return
        for index in range(self.spec["completions"]):
            if index not in self.unschedulable | self.active.keys() and index not in self.succeeded and len(self.active) < self.spec["parallelism"]:
                self._start(index)

    def run_until(self, condition, what: str, seconds: float = 90) -> None:
        def reached():
            self.tick()
            time.sleep(0.05)
            return bool(condition())

        wait_for(reached, lambda: f"{what}; the job is '{self.outcome}'; {self.tell()}", seconds)

    def run_to_the_end(self, seconds: float = 90) -> str:
        self.run_until(lambda: self.outcome and not self.active, "the job did not end", seconds)
        return self.outcome

    def tell(self) -> str:
        return "\n".join(f"--- {pod.name} ({pod.address}){' running' if pod.running() else ''}:\n{pod.said()[-2000:]}"
                         for pod in self.pods)

    def all_ready(self) -> bool:
        return len(self.active) == self.spec["completions"] and all(pod.ready for pod in self.active.values())

    def evict(self, index: int) -> None:
        """As a drained node, or one that another job needs, does: the condition that podFailurePolicy looks for."""
        self.active[index].terminate("DisruptionTarget")

    # What follows from what.

    def _start(self, index: int) -> None:
        pod = Pod(self.world, self.job, index, self._number, self.namespace, {"JOB_COMPLETION_INDEX": str(index)})
        self._number += 1
        self.pods.append(pod)
        self.active[index] = pod
        self._publish(pod)
        self._apply_policies()

    def _publish(self, pod: Pod) -> None:
        """The record of a headless Service for a pod that it selects; pods need not be ready where the Service says so."""
        for service in self.services:
            selects = service["spec"]["selector"].items() <= pod.labels.items()
            assert service["spec"]["clusterIP"] == "None" and service["spec"]["publishNotReadyAddresses"]
            if selects and pod.subdomain == service["metadata"]["name"]:
                self._dns.publish(f"{pod.hostname}.{pod.subdomain}.{pod.namespace}.svc.{self.world.domain}", pod.address)

    def _apply_policies(self) -> None:
        for pod in self.active.values():
            inward = [p for p in self.policies if p["spec"]["podSelector"]["matchLabels"].items() <= pod.labels.items()]
            if not inward:
                continue
            # The node that a pod runs on is always let in (Kubernetes' documentation, "Network Policies").
            allowed = {KUBELET, "127.0.0.0/8", pod.address}
            for rule in (rule for policy in inward for rule in policy["spec"]["ingress"]):
                for peer in rule["from"]:
                    allowed |= {other.address for other in self.active.values()
                                if peer["podSelector"]["matchLabels"].items() <= other.labels.items()}
            lines = ["*filter", ":INPUT DROP [0:0]", "-A INPUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT",
                     *(f"-A INPUT -s {address} -j ACCEPT" for address in sorted(allowed)), "COMMIT", ""]
            subprocess.run(["ip", "netns", "exec", pod.host.name, "iptables-restore"], input="\n".join(lines), text=True,
                           check=True, capture_output=True)

    def _ended(self, index: int, pod: Pod) -> None:
        code = pod.exit_code()
        pod.remove()
        if code == 0:
            self.succeeded.add(index)
            rules = self.spec.get("successPolicy", {}).get("rules", [])
            if len(self.succeeded) == self.spec["completions"] or any(
                    {int(i) for i in rule["succeededIndexes"].split(",")} <= self.succeeded for rule in rules):
                self.outcome = self.outcome or "Complete"
            return
        action = self._action(pod, code)
        if action == "FailJob":
            self.outcome = self.outcome or f"Failed: {pod.name} exited with {code}"
        elif action == "Ignore":
            self.ignored += 1
        else:
            self._not_before = time.monotonic() + _FIRST_BACKOFF_S * 2**self.failures
            self.failures += 1
            if self.failures > self.spec["backoffLimit"]:
                self.outcome = self.outcome or f"Failed: BackoffLimitExceeded, {pod.name} exited with {code}"

    def _action(self, pod: Pod, code: int) -> str:
        for rule in self.spec.get("podFailurePolicy", {}).get("rules", []):
            conditions = {c["type"] for c in rule.get("onPodConditions", [])}
            codes = rule.get("onExitCodes", {})
            if conditions & pod.conditions or (codes.get("operator") == "In" and code in codes["values"]):
                return rule["action"]
        return "Count"


def bridge() -> None:
    """The cluster's network, and the node that the kubelet's probes come from."""
    for command in (["link", "add", "switch", "type", "bridge"], ["addr", "add", f"{KUBELET}/24", "dev", "switch"],
                    ["link", "set", "switch", "up"]):
        subprocess.run(["ip", *command], check=True)


