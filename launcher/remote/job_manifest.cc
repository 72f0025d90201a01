#include "launcher/remote/job_manifest.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/substitute.h"
#include "base/json.h"
#include "launcher/remote/kubernetes_names.h"

namespace muster::launcher {
namespace {

using base::Json;
using base::JsonText;

constexpr int kRendezvousPort = 29400;
// From the workers' exit to the pod's: time for the goodbye and the last lines of output.
constexpr int kGoodbyeSeconds = 10;
// Not below /run, which images and volumes may bring along.
constexpr char kTokenFolder[] = "/etc/muster-token";

// The label that finds everything of the job.
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

// Publishes names before pods are ready, as pods become ready only after they have found each
// other.
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

// Kubernetes always admits the node's kubelet, which probes the pod's health.
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

// podFailurePolicy by Muster's exit codes: 1 and 2 (a worker has failed for good, or the command
// line is wrong) end the job. 3 (the pod with the rendezvous is gone) and 143 (the pod was stopped)
// are followed by a new pod, as is a disruption.
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

// Required by the Pod Security Standard "restricted". Kubernetes makes the token readable for
// fsGroup.
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
                   "is not a valid pod name; use up to 55 lower-case letters, digits and dashes, "
                   "starting with a letter and not ending with a dash");
  }
  if (!spec.name_space.empty() && !IsDnsLabel(spec.name_space)) {
    return Mistake("--namespace", spec.name_space, "is not a namespace name");
  }
  if (!IsDnsName(spec.cluster_domain)) {
    return Mistake("--cluster-domain", spec.cluster_domain,
                   "is not a domain, such as cluster.local");
  }
  if (!spec.secret.empty() && !IsDnsName(spec.secret)) {
    return Mistake("--secret", spec.secret, "is not the name of a Secret");
  }
  const bool has_blank = spec.image.find_first_of(" \t\n") != std::string::npos;
  if (spec.image.empty() || has_blank || !IsUtf8(spec.image)) {
    return Mistake("--image", spec.image, "is not an image name");
  }
  return absl::OkStatus();
}

absl::Status CheckAmounts(const JobSpec& spec) {
  if (!IsExtendedResource(spec.gpu_resource)) {
    return Mistake("--gpu-resource", spec.gpu_resource,
                   "is not a resource name, such as nvidia.com/gpu");
  }
  if (!spec.cpu.empty() && !IsQuantity(spec.cpu)) {
    return Mistake("--cpu", spec.cpu, "is not an amount of CPU; write 4 or 500m");
  }
  if (!spec.memory.empty() && !IsQuantity(spec.memory)) {
    return Mistake("--memory", spec.memory, "is not an amount of memory; write 16Gi");
  }
  return absl::OkStatus();
}

absl::Status CheckContents(const JobSpec& spec) {
  for (const auto& [name, value] : spec.variables) {
    if (!IsVariableName(name)) {
      return Mistake("--env", name, "is not a variable; write NAME=VALUE");
    }
    if (!IsUtf8(value)) return Mistake("--env", name, "has a value that is not UTF-8");
  }
  for (const ClaimMount& mount : spec.claims) {
    if (!IsDnsName(mount.claim) || !mount.path.starts_with('/') ||
        mount.path.find(':') != std::string::npos || !IsUtf8(mount.path)) {
      return Mistake("--volume", absl::StrCat(mount.claim, ":", mount.path),
                     "is not a claim with a mount path; write CLAIM:/PATH");
    }
  }
  for (const std::string& word : spec.run) {
    if (!IsUtf8(word)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "what follows -- is not UTF-8, as Kubernetes manifests must be: ", JsonText(Json(word))));
    }
  }
  return absl::OkStatus();
}

// A double-quoted YAML string: JSON's syntax, with escapes for characters that YAML forbids or
// treats as line breaks.
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

// The rendezvous by its full name: the pod itself finds it in /etc/hosts, without DNS, which may
// not know the pod yet or still know a previous pod of that name.
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

// Requests equal limits, so that a pod is guaranteed what it may use.
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

// Workers of a pod share data in /dev/shm, which has only 64 MB in a container by default.
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
