#include "launcher/hosts/job_manifest.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/substitute.h"
#include "base/json.h"
#include "launcher/hosts/kubernetes_names.h"

namespace muster::launcher {
namespace {

using base::Json;
using base::JsonText;

constexpr int kRendezvousPort = 29400;
// From the end of the workers to that of the pod: the goodbye, and the last lines of output.
constexpr int kGoodbyeSeconds = 10;
// Not below /run, which images and volumes may bring with them.
constexpr char kTokenFolder[] = "/etc/muster-token";

// What all that belongs to the job is found by.
constexpr char kMetadata[] = R"(metadata:
  name: $0
$1  labels:
    app.kubernetes.io/instance: $2
    app.kubernetes.io/managed-by: muster
)";

constexpr char kSecret[] = R"(apiVersion: v1
kind: Secret
$0type: Opaque
stringData:
  token: $1
---
)";

// Names are there before a pod is ready, as pods are ready only when they have found each other.
constexpr char kService[] = R"(apiVersion: v1
kind: Service
$0spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector:
    app.kubernetes.io/instance: $1
  ports:
  - name: rendezvous
    port: $2
---
)";

// The node's kubelet, which asks whether a pod is healthy, is let in by Kubernetes itself.
constexpr char kPolicy[] = R"(apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
$0spec:
  podSelector:
    matchLabels:
      app.kubernetes.io/instance: $1
  policyTypes:
  - Ingress
  ingress:
  - from:
    - podSelector:
        matchLabels:
          app.kubernetes.io/instance: $1
---
)";

// Muster's exit codes, in podFailurePolicy: 1 and 2, a worker has failed for good or the command
// line is wrong, end the job; 3, the pod where nodes meet is gone, and 143, somebody has stopped
// this pod, are followed by a new pod, as is a disruption, which no one is to blame for.
constexpr char kJob[] = R"(apiVersion: batch/v1
kind: Job
$0spec:
  completionMode: Indexed
  completions: $1
  parallelism: $1
  backoffLimit: $2
  podReplacementPolicy: Failed
  podFailurePolicy:
    rules:
    - action: Ignore
      onPodConditions:
      - type: DisruptionTarget
        status: "True"
    - action: FailJob
      onExitCodes:
        containerName: muster
        operator: In
        values: [1, 2]
    - action: Ignore
      onExitCodes:
        containerName: muster
        operator: In
        values: [3, 143]
  successPolicy:
    rules:
    - succeededIndexes: "0"
  template:
    metadata:
      labels:
        app.kubernetes.io/instance: $3
        app.kubernetes.io/managed-by: muster
    spec:
      subdomain: $3
      restartPolicy: Never
      terminationGracePeriodSeconds: $4
      automountServiceAccountToken: false
      enableServiceLinks: false
      securityContext:
        seccompProfile:
          type: RuntimeDefault
$6      containers:
      - name: muster
        image: $5
        command: ["muster", "run"]
)";

constexpr char kProbes[] = R"(        ports:
        - name: rendezvous
          containerPort: $0
        - name: health
          containerPort: $1
        livenessProbe:
          httpGet:
            path: /healthz
            port: health
          periodSeconds: 10
          timeoutSeconds: 5
          failureThreshold: 6
        readinessProbe:
          httpGet:
            path: /healthz/ready
            port: health
          periodSeconds: 2
          timeoutSeconds: 5
        securityContext:
          allowPrivilegeEscalation: false
$2)";

// What pods in a namespace with the Pod Security Standard "restricted" have to have. The group is
// what Kubernetes lets read the token.
constexpr char kUser[] = R"(        runAsNonRoot: true
        runAsUser: $0
        runAsGroup: $0
        fsGroup: $0
)";
constexpr char kNoCapabilities[] = R"(          capabilities:
            drop: ["ALL"]
)";

absl::Status Mistake(absl::string_view flag, absl::string_view value, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(flag, "=", value, " ", why));
}

bool IsUtf8(const std::string& text) {
  return base::ParseJson(JsonText(Json(text))) == Json(text);
}

absl::Status CheckNames(const JobSpec& spec) {
  // Each pod's host name is the job's name and its index.
  const std::string longest = absl::StrCat(spec.name, "-", spec.max_nodes - 1);
  if (!IsServiceName(spec.name) || !IsDnsLabel(longest)) {
    return Mistake("--name", spec.name,
                   "is no name that pods can have; write up to 55 small letters, digits and "
                   "dashes, with a letter first and no dash last");
  }
  if (!spec.name_space.empty() && !IsDnsLabel(spec.name_space)) {
    return Mistake("--namespace", spec.name_space, "is no name of a namespace");
  }
  if (!IsDnsName(spec.cluster_domain)) {
    return Mistake("--cluster-domain", spec.cluster_domain, "is no domain, such as cluster.local");
  }
  if (!spec.secret.empty() && !IsDnsName(spec.secret)) {
    return Mistake("--secret", spec.secret, "is no name of a Secret");
  }
  const bool has_blank = spec.image.find_first_of(" \t\n") != std::string::npos;
  if (spec.image.empty() || has_blank || !IsUtf8(spec.image)) {
    return Mistake("--image", spec.image, "is no name of an image");
  }
  return absl::OkStatus();
}

absl::Status CheckAmounts(const JobSpec& spec) {
  if (!IsExtendedResource(spec.gpu_resource)) {
    return Mistake("--gpu-resource", spec.gpu_resource, "is no resource, such as nvidia.com/gpu");
  }
  if (!spec.cpu.empty() && !IsQuantity(spec.cpu)) {
    return Mistake("--cpu", spec.cpu, "is no amount of processors; write 4 or 500m");
  }
  if (!spec.memory.empty() && !IsQuantity(spec.memory)) {
    return Mistake("--memory", spec.memory, "is no amount of memory; write 16Gi");
  }
  return absl::OkStatus();
}

absl::Status CheckContents(const JobSpec& spec) {
  for (const auto& [name, value] : spec.variables) {
    if (!IsVariableName(name)) {
      return Mistake("--env", name, "is no variable; write NAME=VALUE");
    }
    if (!IsUtf8(value)) return Mistake("--env", name, "has a value that is no UTF-8");
  }
  for (const ClaimMount& mount : spec.claims) {
    if (!IsDnsName(mount.claim) || !mount.path.starts_with('/') ||
        mount.path.find(':') != std::string::npos || !IsUtf8(mount.path)) {
      return Mistake("--volume", absl::StrCat(mount.claim, ":", mount.path),
                     "is no claim and no place for it; write CLAIM:/PATH");
    }
  }
  for (const std::string& word : spec.run) {
    if (!IsUtf8(word)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "what follows -- is no UTF-8, which Kubernetes' manifests are: ", JsonText(Json(word))));
    }
  }
  return absl::OkStatus();
}

// A text as YAML has it between double quotes, which is as JSON has it, but for what YAML allows
// nowhere, or takes for the end of a line.
std::string Quoted(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> escapes = {
      {"\x7f", "\\u007f"},   {"\u2028", "\\u2028"}, {"\u2029", "\\u2029"},
      {"\ufeff", "\\ufeff"}, {"\ufffe", "\\ufffe"}, {"\uffff", "\\uffff"}};
  for (int c = 0x80; c < 0xa0; ++c) {
    escapes.emplace_back(std::string("\xc2") + static_cast<char>(c),
                         absl::StrCat("\\u00", absl::Hex(c)));
  }
  return absl::StrReplaceAll(JsonText(Json(text)), escapes);
}

std::string Metadata(const JobSpec& spec, absl::string_view name) {
  const std::string name_space =
      spec.name_space.empty() ? "" : absl::StrCat("  namespace: ", Quoted(spec.name_space), "\n");
  return absl::Substitute(kMetadata, Quoted(std::string(name)), name_space, Quoted(spec.name));
}

std::string SecretName(const JobSpec& spec) {
  return spec.secret.empty() ? spec.name + "-token" : spec.secret;
}

// Where nodes meet, by its whole name: a pod finds its own in its /etc/hosts, without DNS, which
// may not know of it yet, or of another pod that had the name before it.
std::string Endpoint(const JobSpec& spec) {
  return absl::StrCat(spec.name, "-0.", spec.name, ".",
                      spec.name_space.empty() ? "$(MUSTER_NAMESPACE)" : spec.name_space, ".svc.",
                      spec.cluster_domain, ":", kRendezvousPort);
}

std::string Arguments(const JobSpec& spec) {
  std::vector<std::string> words;
  if (spec.max_nodes > 1) {
    const std::string min =
        spec.min_nodes == spec.max_nodes ? "" : absl::StrCat(spec.min_nodes, ":");
    words = {absl::StrCat("--nnodes=", min, spec.max_nodes),
             absl::StrCat("--rdzv-endpoint=", Endpoint(spec)), "--rdzv-id=" + spec.name,
             absl::StrCat("--rdzv-conf=join_timeout=", spec.wait, ",connect_timeout=", spec.wait)};
  }
  if (spec.gpus > 0) words.push_back(absl::StrCat("--nproc-per-node=", spec.gpus));
  words.push_back(absl::StrCat("--shutdown-timeout=", spec.grace));
  words.push_back(
      absl::StrCat("--health-port=", spec.name, "-$(JOB_COMPLETION_INDEX):", kPodHealthPort));
  for (const std::string& word : spec.run) words.push_back(WithoutExpansion(word));
  std::string text = "        args:\n";
  for (const std::string& word : words) absl::StrAppend(&text, "        - ", Quoted(word), "\n");
  return text;
}

std::string Variables(const JobSpec& spec) {
  std::string text;
  const auto add = [&](absl::string_view name, const std::string& value) {
    absl::StrAppend(&text, "        - name: ", Quoted(std::string(name)),
                    "\n          value: ", Quoted(value), "\n");
  };
  if (spec.max_nodes > 1) {
    add("MUSTER_TOKEN_FILE", absl::StrCat(kTokenFolder, "/token"));
    if (spec.name_space.empty()) {
      absl::StrAppend(&text, "        - name: MUSTER_NAMESPACE\n          valueFrom:\n",
                      "            fieldRef:\n              fieldPath: metadata.namespace\n");
    }
  }
  for (const auto& [name, value] : spec.variables) add(name, WithoutExpansion(value));
  return text.empty() ? "" : "        env:\n" + text;
}

// Requests are the limits, so a pod has what it was promised.
std::string Resources(const JobSpec& spec) {
  std::string text;
  const auto add = [&](const std::string& resource, const std::string& amount) {
    absl::StrAppend(&text, "            ", Quoted(resource), ": ", Quoted(amount), "\n");
  };
  if (!spec.cpu.empty()) add("cpu", spec.cpu);
  if (!spec.memory.empty()) add("memory", spec.memory);
  if (spec.gpus > 0) add(spec.gpu_resource, absl::StrCat(spec.gpus));
  if (text.empty()) return "";
  return absl::StrCat("        resources:\n          requests:\n", text, "          limits:\n",
                      text);
}

// What workers share within a pod lies in /dev/shm, for which containers have 64 MB by themselves.
std::string Volumes(const JobSpec& spec) {
  std::string mounts =
      "        volumeMounts:\n        - name: shm\n          mountPath: /dev/shm\n";
  std::string volumes =
      "      volumes:\n      - name: shm\n        emptyDir:\n          medium: Memory\n";
  if (spec.max_nodes > 1) {
    absl::StrAppend(&mounts, "        - name: token\n          mountPath: ", kTokenFolder,
                    "\n          readOnly: true\n");
    absl::StrAppend(&volumes, "      - name: token\n        secret:\n          secretName: ",
                    Quoted(SecretName(spec)), "\n          defaultMode: 256  # 0400\n");
  }
  for (std::size_t i = 0; i < spec.claims.size(); ++i) {
    absl::StrAppend(&mounts, "        - name: claim-", i,
                    "\n          mountPath: ", Quoted(spec.claims[i].path), "\n");
    absl::StrAppend(&volumes, "      - name: claim-", i,
                    "\n        persistentVolumeClaim:\n          claimName: ",
                    Quoted(spec.claims[i].claim), "\n");
  }
  return mounts + volumes;
}

}  // namespace

absl::StatusOr<std::string> JobManifest(const JobSpec& spec) {
  absl::Status status = CheckNames(spec);
  if (status.ok()) status = CheckAmounts(spec);
  if (status.ok()) status = CheckContents(spec);
  if (!status.ok()) return status;

  const std::string name = Quoted(spec.name);
  std::string text;
  if (spec.max_nodes > 1) {
    if (spec.secret.empty()) {
      absl::StrAppend(
          &text, absl::Substitute(kSecret, Metadata(spec, SecretName(spec)), Quoted(spec.token)));
    }
    absl::StrAppend(&text,
                    absl::Substitute(kService, Metadata(spec, spec.name), name, kRendezvousPort),
                    absl::Substitute(kPolicy, Metadata(spec, spec.name), name));
  }
  absl::StrAppend(&text,
                  absl::Substitute(kJob, Metadata(spec, spec.name), spec.max_nodes, spec.backoff,
                                   name, spec.grace + kGoodbyeSeconds, Quoted(spec.image),
                                   spec.user == 0 ? "" : absl::Substitute(kUser, spec.user)),
                  Arguments(spec), Variables(spec), Resources(spec),
                  absl::Substitute(kProbes, kRendezvousPort, kPodHealthPort,
                                   spec.user == 0 ? "" : kNoCapabilities),
                  Volumes(spec));
  return text;
}

}  // namespace muster::launcher
