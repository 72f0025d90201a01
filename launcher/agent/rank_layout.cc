#include "launcher/agent/rank_layout.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/signal_names.h"
#include "launcher/config/prefix_template.h"
#include "launcher/machine/devices.h"
#include "worker/env_names.h"

namespace muster::launcher {
namespace {

namespace env = worker::env;

// What all workers of the node have in common.
Environment NodeEnvironment(const LaunchConfig& config, const rendezvous::Assignment& assignment,
                            const NodeBase& base, const AttemptLogs& logs) {
  Environment result = base.environment;
  result[env::kGroupRank] = absl::StrCat(assignment.group_rank);
  result[env::kGroupWorldSize] = absl::StrCat(assignment.group_world_size);
  result[env::kLocalWorldSize] = absl::StrCat(config.nproc_per_node);
  result[env::kWorldSize] = absl::StrCat(assignment.world_size);
  result[env::kRoleName] = config.role;
  result[env::kRoleWorldSize] = absl::StrCat(assignment.role_world_size);
  result[env::kMasterAddr] = assignment.master_addr;
  result[env::kMasterPort] = absl::StrCat(assignment.master_port);
  result[env::kRunId] = assignment.run_id;
  // Those that are inherited are of another job, in whose worker this one was started.
  result.erase(env::kRound);
  result.erase(env::kRendezvousEndpoint);
  if (!base.rendezvous.empty()) {
    result[env::kRound] = absl::StrCat(assignment.round);
    result[env::kRendezvousEndpoint] = base.rendezvous;
  }
  result[env::kRestartCount] = absl::StrCat(assignment.restart_count);
  result[env::kMaxRestarts] = absl::StrCat(assignment.max_restarts);
  result[env::kUseAgentStore] = assignment.agent_store ? "True" : "False";
  result[env::kSignalsToHandle] = absl::StrJoin(
      config.stop_signals, ",",
      [](std::string* out, int signal) { absl::StrAppend(out, base::SignalName(signal)); });
  if (!base.timer_file.empty()) result[env::kTimerFile] = base.timer_file;
  if (!base.beat_socket.empty()) result[env::kBeatSocket] = base.beat_socket;
  result.erase(env::kFlightLog);
  if (!logs.flight_log.empty()) result[env::kFlightLog] = logs.flight_log;
  return result;
}

// The names that LayOutRanks sets for each worker, and the one that the WorkerGroup adds to.
constexpr const char* kOwnNames[] = {env::kRank,        env::kLocalRank,          env::kRoleRank,
                                     env::kErrorFile,   env::kCudaVisibleDevices, env::kAgentId,
                                     env::kFlightOffset};

std::vector<std::string> ExpandMacros(const std::vector<std::string>& argv, int local_rank) {
  const std::string digits = absl::StrCat(local_rank);
  std::vector<std::string> result = argv;
  for (std::size_t i = 1; i < result.size(); ++i) {
    result[i] = absl::StrReplaceAll(result[i], {{"${local_rank}", digits}});
  }
  return result;
}

struct Way {
  bool redirected = false;
  bool teed = false;
  // --prefix-lines.
  bool prefixed = false;
  // --local-ranks-filter names this rank, or none.
  bool shown = true;
};

worker::OutputSpec Route(const Way& way, const std::string& file, const std::string& prefix,
                         const std::vector<std::string>& filters,
                         const std::string& filtered_file) {
  worker::OutputSpec output;
  if (way.redirected || way.teed) output.file = file;
  output.to_console = way.shown && (way.teed || !way.redirected);
  if (way.teed || way.prefixed) output.prefix = prefix;
  if (!way.teed) return output;
  if (!filters.empty() && !filtered_file.empty()) {
    output.filters = filters;
    output.filtered_file = filtered_file;
  }
  return output;
}

bool IsShown(const LaunchConfig& config, int local_rank) {
  const std::vector<int>& filter = config.local_ranks_filter;
  return filter.empty() || std::find(filter.begin(), filter.end(), local_rank) != filter.end();
}

// torchrun's default has no space behind the colon.
constexpr char kDefaultTemplate[] = "[${role_name}${local_rank}]:";

}  // namespace

std::vector<worker::WorkerSpec> LayOutRanks(const LaunchConfig& config,
                                            const rendezvous::Assignment& assignment,
                                            const NodeBase& base, const AttemptLogs& logs) {
  Environment common = NodeEnvironment(config, assignment, base, logs);
  Environment own;
  for (const char* const name : kOwnNames) {
    if (auto entry = common.extract(name)) own.insert(std::move(entry));
  }
  own.erase(env::kFlightOffset);
  const auto common_env = std::make_shared<const std::vector<std::string>>(ToBlock(common));
  const std::string prefix_template =
      config.prefix_template.empty() ? kDefaultTemplate : config.prefix_template;
  std::vector<worker::WorkerSpec> specs;
  for (int local_rank = 0; local_rank < config.nproc_per_node; ++local_rank) {
    const auto index = static_cast<std::size_t>(local_rank);
    const RankLogs& files = logs.ranks.at(index);
    worker::WorkerSpec& spec = specs.emplace_back();
    spec.rank = assignment.base_rank + local_rank;
    spec.local_rank = local_rank;
    spec.role = config.role;
    spec.argv = ExpandMacros(config.program.argv, local_rank);
    spec.directory = files.directory;
    spec.error_file = files.error_file;
    if (!base.cpus.empty()) {
      spec.cpus.assign(base.cpus.at(index).begin(), base.cpus.at(index).end());
    }

    own[env::kRank] = absl::StrCat(spec.rank);
    own[env::kLocalRank] = absl::StrCat(config.virtual_local_rank ? 0 : local_rank);
    own[env::kRoleRank] = absl::StrCat(assignment.role_base_rank + local_rank);
    own[env::kErrorFile] = files.error_file;
    if (!logs.flight_log.empty()) {
      own[env::kFlightOffset] = absl::StrCat(logs.flight_offsets.at(index));
    }
    if (config.virtual_local_rank) {
      own[env::kCudaVisibleDevices] = DeviceOfRank(local_rank, base.environment).value();
    }
    spec.common_env = common_env;
    spec.env = ToBlock(own);

    const std::string prefix =
        ExpandTemplate(prefix_template, {{"role_name", config.role},
                                         {"rank", absl::StrCat(spec.rank)},
                                         {"local_rank", absl::StrCat(local_rank)},
                                         {"hostname", base.host}});
    const Streams redirects = config.redirects.For(local_rank);
    const Streams tee = config.tee.For(local_rank);
    const bool shown = IsShown(config, local_rank);
    spec.stdout_spec =
        Route({.redirected = HasStdout(redirects),
               .teed = HasStdout(tee),
               .prefixed = config.prefix_lines,
               .shown = shown},
              files.stdout_log, prefix, config.stdout_filters, logs.filtered_stdout_log);
    spec.stderr_spec =
        Route({.redirected = HasStderr(redirects),
               .teed = HasStderr(tee),
               .prefixed = config.prefix_lines,
               .shown = shown},
              files.stderr_log, prefix, config.stderr_filters, logs.filtered_stderr_log);
    // What is not read cannot be seen as a sign of life.
    spec.stdout_spec.keep_tail = config.hang.output_counts;
    spec.stderr_spec.keep_tail = spec.stderr_spec.file.empty() || config.hang.output_counts;
  }
  return specs;
}

}  // namespace muster::launcher
