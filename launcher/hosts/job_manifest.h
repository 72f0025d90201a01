// What Kubernetes is told so that it runs a job on its nodes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::launcher {

// A claim (PersistentVolumeClaim) and where pods see it.
struct ClaimMount {
  std::string claim;
  std::string path;
};

// A job as its user describes it. Of what Kubernetes has names for, texts are as Kubernetes writes
// them; empty: left to Kubernetes.
struct JobSpec {
  // Of the job, and of all that belongs to it.
  std::string name = "muster";
  std::string name_space;
  // What the cluster's names end with.
  std::string cluster_domain = "cluster.local";
  std::string image;
  // Pods, one node of the job each.
  int min_nodes = 1;
  int max_nodes = 1;
  // What each pod has. 0 GPUs: none are asked for, and the number of workers is left open.
  int gpus = 0;
  std::string gpu_resource = "nvidia.com/gpu";
  std::string cpu;
  std::string memory;
  std::vector<std::pair<std::string, std::string>> variables;
  std::vector<ClaimMount> claims;
  // The user, and group, that pods run as; 0: whom the image says.
  int user = 0;
  // A Secret that is there already, whose key `token` holds the token; empty: one is made of
  // `token`, a token file's text.
  std::string secret;
  std::string token;
  // Seconds that workers have to save when their pod must go; that pods wait for one another.
  int grace = 30;
  int wait = 1800;
  // How many pods may fail, by what is neither the workers' failure nor a disruption, before the
  // job has failed.
  int backoff = 6;
  // What follows `muster run`.
  std::vector<std::string> run;
};

// The port of each pod at which its agent says whether it is healthy (launcher/agent/
// health_server.h).
inline constexpr int kPodHealthPort = 29480;

// The manifest, in YAML: an Indexed Job with a pod for each node; and, for more nodes than one, a
// headless Service by whose names pods find each other, a NetworkPolicy that lets none but them in,
// and the token's Secret. The pod with index 0 is where nodes meet, and the job is done when that
// pod is: Muster's host leaves last. InvalidArgument, one sentence, for what Kubernetes would not
// take.
absl::StatusOr<std::string> JobManifest(const JobSpec& spec);

}  // namespace muster::launcher
