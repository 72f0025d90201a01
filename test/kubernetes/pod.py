"""A pod: a container of podman's in a network namespace of its own, with what Kubernetes gives it: a name, an address, a
resolv.conf, an environment, volumes, a Secret, probes, and SIGTERM before SIGKILL."""

import base64
import http.client
import os
import re
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from cluster import Host
from processes import Program

KUBELET = "10.78.0.254"


def expand(text: str, variables: dict[str, str]) -> str:
    """$(NAME) in arguments and values, as k8s.io/kubernetes/third_party/forked/golang/expansion does it: $$ is a dollar
    sign, and what names no variable stays."""
    def replaced(match: re.Match) -> str:
        if match.group() == "$$":
            return "$"
        return variables.get(match.group(1), match.group())

    return re.sub(r"\$\$|\$\(([^)]*)\)", replaced, text)


@dataclass
class World:
    """What all pods share."""

    folder: Path
    podman: list[str]
    environment: dict[str, str]
    claims: Path  # a folder for each claim
    domain: str = "cluster.local"
    secrets: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)  # (namespace, name): stringData


class Pod:
    """Runs from the start, as `job`'s template says. `number`: its place among all pods that there ever were;
    `variables`: what its controller gives it."""

    def __init__(self, world: World, job: dict, index: int, number: int, namespace: str, variables: dict[str, str]):
        template = job["spec"]["template"]
        self.world, self.index, self.namespace, self._given = world, index, namespace, variables
        self.labels = template.get("metadata", {}).get("labels", {})
        self.spec = template["spec"]
        self.container = self.spec["containers"][0]
        self.hostname = f"{job['metadata']['name']}-{index}"
        self.name = f"{self.hostname}-{number}"
        self.subdomain = self.spec.get("subdomain", "")
        self.address = f"10.78.0.{number}"
        self.conditions: set[str] = set()
        self.deadline: float | None = None  # after which SIGKILL
        self.failed_probes = 0
        self._next_probe: dict[str, float] = {}
        self.ready = False
        self.folder = world.folder / self.name
        self.folder.mkdir()
        self.host = Host(f"pod{number}", self.address)
        self.log = self.folder / "log"
        with open(self.log, "wb") as log:
            self._program = Program(self.name, self._command(), world.environment, stdout=log, stderr=log)

    # What the kubelet prepares.

    def _command(self) -> list[str]:
        variables = self._variables()
        limits = self.container.get("securityContext", {})
        words = [*self.world.podman, "run", "--rm", f"--name={self.name}", f"--hostname={self.hostname}", "--pull=never",
                 f"--network=ns:/run/netns/{self.host.name}", "--no-hosts"]
        if limits.get("allowPrivilegeEscalation") is False:
            words.append("--security-opt=no-new-privileges")
        context = self.spec.get("securityContext", {})
        if "runAsUser" in context:
            words.append(f"--user={context['runAsUser']}:{context['runAsGroup']}")
        words += [f"--cap-drop={capability}" for capability in limits.get("capabilities", {}).get("drop", [])]
        words += [f"--env={name}={value}" for name, value in variables.items()]
        words += self._mounts()
        command = [expand(word, variables) for word in self.container.get("command", [])]
        arguments = [expand(word, variables) for word in self.container.get("args", [])]
        if command:
            words.append("--entrypoint=" + command[0])
        return [*words, self.container["image"], *command[1:], *arguments]

    def _variables(self) -> dict[str, str]:
        # The API server's address is given to every pod, enableServiceLinks or not.
        variables = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"} | self._given
        for entry in self.container.get("env", []):
            if "valueFrom" in entry:
                path = entry["valueFrom"]["fieldRef"]["fieldPath"]
                variables[entry["name"]] = {"metadata.namespace": self.namespace, "status.podIP": self.address,
                                            "metadata.name": self.name}[path]
            else:
                variables[entry["name"]] = expand(str(entry.get("value", "")), variables)
        return variables

    def _mounts(self) -> list[str]:
        # As the kubelet writes it: the pod's own whole name.
        whole = f"{self.hostname}.{self.subdomain}.{self.namespace}.svc.{self.world.domain}\t" if self.subdomain else ""
        (self.folder / "hosts").write_text(f"127.0.0.1\tlocalhost\n{self.address}\t{whole}{self.hostname}\n")
        (self.folder / "resolv.conf").write_text(
            f"search {self.namespace}.svc.{self.world.domain} svc.{self.world.domain} {self.world.domain}\n"
            f"nameserver {KUBELET}\noptions ndots:5\n")
        words = [f"--volume={self.folder}/hosts:/etc/hosts", f"--volume={self.folder}/resolv.conf:/etc/resolv.conf"]
        volumes = {volume["name"]: volume for volume in self.spec.get("volumes", [])}
        for mount in self.container.get("volumeMounts", []):
            volume, path = volumes[mount["name"]], mount["mountPath"]
            mode = ":ro" if mount.get("readOnly") else ""
            if "emptyDir" in volume:
                words.append(f"--mount=type=tmpfs,destination={path},tmpfs-mode=1777")
            elif "secret" in volume:
                words.append(f"--volume={self._secret(volume['secret'])}:{path}{mode}")
            else:
                claim = self.world.claims / volume["persistentVolumeClaim"]["claimName"]
                claim.mkdir(exist_ok=True)
                self._give_to_group(claim)
                words.append(f"--volume={claim}:{path}{mode}")
        return words

    def _secret(self, secret: dict) -> Path:
        """The folder of a Secret, with the links by which the kubelet exchanges all of it at once (AtomicWriter)."""
        folder = self.folder / "secret"
        data = folder / "..2026_11_25"
        data.mkdir(parents=True)
        folder.chmod(0o1777)
        (folder / "..data").symlink_to(data.name)
        for key, value in self.world.secrets[self.namespace, secret["secretName"]].items():
            (data / key).write_text(value)
            (data / key).chmod(secret.get("defaultMode", 0o644))
            (folder / key).symlink_to(f"..data/{key}")
        for path in (folder, data, *data.iterdir()):
            self._give_to_group(path)
        return folder

    def _give_to_group(self, path: Path) -> None:
        """As the kubelet does with volumes where there is an fsGroup (pkg/volume/volume_linux.go)."""
        group = self.spec.get("securityContext", {}).get("fsGroup")
        if group is None:
            return
        os.chown(path, -1, group)
        mode = path.stat().st_mode & 0o7777
        path.chmod(mode | (0o2770 if path.is_dir() else 0o440))

    # Its life.

    def terminate(self, condition: str = "") -> None:
        """SIGTERM, and SIGKILL after the grace period (tend)."""
        if condition:
            self.conditions.add(condition)
        if self.deadline is None and self.running():
            self.deadline = time.monotonic() + self.spec.get("terminationGracePeriodSeconds", 30)
            self.kill(signal.SIGTERM)

    def kill(self, number: int) -> None:
        self._podman("kill", f"--signal={int(number)}", self.name)

    def running(self) -> bool:
        return self._program.running()

    def exit_code(self) -> int:
        return self._program.wait()

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def tend(self) -> None:
        """What the kubelet does from time to time: probes, and SIGKILL."""
        if not self.running():
            return
        now = time.monotonic()
        if self.deadline is not None and now > self.deadline:
            self.deadline = now + 60
            self.kill(signal.SIGKILL)
        if self.deadline is not None:
            return
        if self._is_due("readinessProbe", now):
            self.ready = self.probe("readinessProbe")
        if self._is_due("livenessProbe", now):
            self.failed_probes = 0 if self.probe("livenessProbe") else self.failed_probes + 1
            if self.failed_probes >= self.container["livenessProbe"]["failureThreshold"]:
                self.terminate()

    def _is_due(self, kind: str, now: float) -> bool:
        if kind not in self.container or now < self._next_probe.get(kind, 0):
            return False
        self._next_probe[kind] = now + self.container[kind]["periodSeconds"]
        return True

    def probe(self, kind: str) -> bool:
        """As the kubelet does, from the node's address."""
        wanted = self.container[kind]["httpGet"]
        ports = {port["name"]: port["containerPort"] for port in self.container["ports"]}
        connection = http.client.HTTPConnection(self.address, ports[wanted["port"]],
                                             timeout=self.container[kind]["timeoutSeconds"])
        try:
            connection.request("GET", wanted["path"], headers={"User-Agent": "kube-probe/1.34"})
            return 200 <= connection.getresponse().status < 400
        except OSError:
            return False
        finally:
            connection.close()

    def remove(self) -> None:
        """The sandbox goes, and the address with it."""
        subprocess.run(["ip", "netns", "del", self.host.name], check=True)
        shutil.rmtree(self.folder / "secret", ignore_errors=True)

    def _podman(self, *words: str) -> None:
        subprocess.run([*self.world.podman, *words], env=self.world.environment, capture_output=True, check=False)


def secret_data(secret: dict) -> dict[str, str]:
    """A Secret's values as text, however they are written."""
    decoded = {key: base64.b64decode(value).decode() for key, value in secret.get("data", {}).items()}
    return decoded | secret.get("stringData", {})


def podman_of(folder: Path) -> tuple[list[str], dict[str, str]]:
    """podman, with storage below `folder` that disappears with it, and its environment."""
    configuration = folder / "containers.conf"
    # crun refuses control groups of both versions side by side, and no limit may be above this process's own.
    configuration.write_text('[containers]\ndefault_ulimits = ["nofile=1024:20000", "nproc=4096:4096"]\n'
                             '[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "none"\n')
    return (["podman", "--log-level=error", f"--root={folder}/storage", f"--runroot={folder}/run", "--storage-driver=overlay"],
            {"PATH": os.environ["PATH"], "CONTAINERS_CONF": str(configuration), "HOME": str(folder), "LANG": "C.UTF-8"})
