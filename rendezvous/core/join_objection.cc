#include "rendezvous/core/join_objection.h"

#include <chrono>
#include <climits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/phrases.h"
#include "rendezvous/core/names.h"

namespace muster::rendezvous {
namespace {

constexpr Duration kShortestLease = std::chrono::milliseconds(100);
// For so long at most a node that is lost can keep the others waiting.
constexpr Duration kLongestLease = std::chrono::hours(1);
constexpr Duration kLongestDelay = std::chrono::hours(24);
constexpr std::size_t kLongestSession = 64;

std::string SettingsObjection(const JobSettings& settings, int max_nodes) {
  if (settings.min_nodes < 1 || settings.max_nodes < settings.min_nodes ||
      settings.max_nodes > max_nodes) {
    return absl::StrCat("the number of nodes ", settings.min_nodes, ":", settings.max_nodes,
                        " is not 1 <= min <= max <= ", max_nodes);
  }
  if (settings.max_restarts < 0) return "the number of restarts is negative";
  if (settings.exact_ranks && settings.min_nodes != settings.max_nodes) {
    return "fixed node ranks need a fixed number of nodes, not MIN:MAX";
  }
  if (settings.join_timeout <= Duration::zero() || settings.last_call < Duration::zero() ||
      settings.keep_alive < Duration::zero() || settings.lease < Duration::zero()) {
    return "a timeout is not positive";
  }
  const RestartPolicy& restart = settings.restart;
  if (restart.window < Duration::zero() || restart.delay < Duration::zero() ||
      restart.longest_delay < restart.delay || restart.longest_delay > kLongestDelay ||
      restart.no_progress_limit < 0) {
    return "the restart policy has a negative number, or a delay that is too long";
  }
  if (!(settings.straggler_threshold >= 0)) return "the threshold for stragglers is not from 0";
  if (settings.lease != Duration::zero() && settings.lease < kShortestLease) {
    return absl::StrCat("the lease of ", base::Seconds(settings.lease), " is shorter than ",
                        base::Seconds(kShortestLease));
  }
  if (settings.lease > kLongestLease) {
    return absl::StrCat("the lease of ", base::Seconds(settings.lease), " is longer than ",
                        base::Seconds(kLongestLease),
                        ", for which a lost node would hold up the others");
  }
  return "";
}

std::string NodeCounts(const JobSettings& settings) {
  if (settings.min_nodes == settings.max_nodes) return absl::StrCat(settings.max_nodes);
  return absl::StrCat(settings.min_nodes, ":", settings.max_nodes);
}

std::string NodeObjection(const NodeInfo& node) {
  if (const absl::Status status = CheckName("node id", node.node_id); !status.ok()) {
    return std::string(status.message());
  }
  if (node.slots < 1 || node.slots > 65'536) {
    return absl::StrCat(node.slots, " workers on a node is not between 1 and 65536");
  }
  if (node.master_port == 0) return "the node holds no port for the workers' store";
  if (node.rank_hint && *node.rank_hint < 0) return "the node rank is negative";
  return "";
}

}  // namespace

std::string NameObjection(const JoinRequest& request) {
  if (const absl::Status status = CheckName("run id", request.run_id); !status.ok()) {
    return std::string(status.message());
  }
  if (request.session.size() > kLongestSession) return "the session token is too long";
  return "";
}

std::string ReturnObjection(const JoinRequest& request, const std::string& run_id,
                            const std::string& node_id) {
  if (request.run_id == run_id && request.node.node_id == node_id) {
    return NodeObjection(request.node);
  }
  return absl::StrCat("an agent of job '", run_id, "' as node ", node_id, " cannot join job '",
                      request.run_id, "' as node ", request.node.node_id);
}

std::string RequestObjection(const JoinRequest& request, int max_nodes) {
  const JobSettings& settings = request.settings;
  const NodeInfo& node = request.node;
  if (std::string objection = SettingsObjection(settings, max_nodes); !objection.empty()) {
    return objection;
  }
  if (std::string objection = NodeObjection(node); !objection.empty()) return objection;
  if (settings.exact_ranks && node.rank_hint.value_or(INT_MAX) >= settings.max_nodes) {
    return absl::StrCat("node ", node.host, " has no node rank below ", settings.max_nodes,
                        ", the number of nodes");
  }
  if (node.slots > INT_MAX / settings.max_nodes) {
    return absl::StrCat(node.slots, " workers on each of ", settings.max_nodes,
                        " nodes are more than ", INT_MAX, " in all");
  }
  return "";
}

std::string SettingsDisagreement(const JobSettings& settings, const JoinRequest& request) {
  if (settings.exact_ranks != request.settings.exact_ranks) {
    return absl::StrCat("node ", request.node.host, settings.exact_ranks ? " has no" : " has a",
                        " fixed node rank, unlike the other nodes of job '", request.run_id,
                        "'; give the same --rdzv-backend and addresses on every node");
  }
  if (settings.store_tunnel != request.settings.store_tunnel) {
    return absl::StrCat("node ", request.node.host, " asks for a workers' store ",
                        settings.store_tunnel ? "without" : "with", " a tunnel, unlike job '",
                        request.run_id, "'; give the same --worker-store on every node");
  }
  if (settings.min_nodes != request.settings.min_nodes ||
      settings.max_nodes != request.settings.max_nodes) {
    return absl::StrCat("node ", request.node.host,
                        " asks for --nnodes=", NodeCounts(request.settings), ", but job '",
                        request.run_id, "' was started with --nnodes=", NodeCounts(settings),
                        "; use the same on every node, or another --rdzv-id for another job");
  }
  return "";
}

}  // namespace muster::rendezvous
