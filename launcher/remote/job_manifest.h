// The Kubernetes manifest for a job.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::launcher {

// A PersistentVolumeClaim and its mount point in the pods.
struct ClaimMount {
  std::string claim;
  std::string path;
};

// A job as its user describes it, in Kubernetes' own spelling; an empty text is left to Kubernetes.
struct JobSpec {
  // The name of the job and prefix of everything that belongs to it.
  std::string name = "muster";
  std::string name_space;
  // The suffix of the cluster's DNS names.
  std::string cluster_domain = "cluster.local";
  std::string image;
  // Pods, each one node of the job.
  int min_nodes = 1;
  int max_nodes = 1;
  // Resources of each pod. With 0 GPUs none are requested, and the number of workers is left open.
  int gpus = 0;
  std::string gpu_resource = "nvidia.com/gpu";
  std::string cpu;
  std::string memory;
  std::vector<std::pair<std::string, std::string>> variables;
  std::vector<ClaimMount> claims;
  // The user and group of the pods' processes; 0: the image decides.
  int user = 0;
  // An existing Secret with the token in its key `token`; empty: one is created from `token`, the
  // text of a token file.
  std::string secret;
  std::string token;
  // Seconds that workers have to save when their pod is stopped, and that pods wait for one
  // another.
  int grace = 30;
  int wait = 1800;
  // How many pods may fail, for reasons other than a worker's failure or a disruption, before the
  // job fails.
  int backoff = 6;
  // The arguments of `muster run`.
  std::vector<std::string> run;
};

// The port on each pod for its agent's health (launcher/run/run_status.h).
inline constexpr int kPodHealthPort = 29480;

// The manifest in YAML: an Indexed Job with one pod per node. With more than one node also a
// headless Service for the pods' names, a NetworkPolicy that admits only them, and the token's
// Secret. The pod with index 0 serves the rendezvous and leaves last, so the job is complete when
// that pod is. InvalidArgument, one sentence, for what Kubernetes would reject.
absl::StatusOr<std::string> JobManifest(const JobSpec& spec);

}  // namespace muster::launcher
