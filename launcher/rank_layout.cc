#include "launcher/rank_layout.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "worker/env_names.h"

namespace muster::launcher {
namespace {

namespace env = worker::env;

// What all workers of the node have in common.
Environment NodeEnvironment(const LaunchConfig& config, const rendezvous::Assignment& assignment,
                            Environment base) {
  Environment result = std::move(base);
  result[env::kGroupRank] = absl::StrCat(assignment.group_rank);
  result[env::kGroupWorldSize] = absl::StrCat(assignment.group_world_size);
  result[env::kLocalWorldSize] = absl::StrCat(config.nproc_per_node);
  result[env::kWorldSize] = absl::StrCat(assignment.world_size);
  result[env::kRoleName] = config.role;
  result[env::kRoleWorldSize] = absl::StrCat(assignment.role_world_size);
  result[env::kMasterAddr] = assignment.master_addr;
  result[env::kMasterPort] = absl::StrCat(assignment.master_port);
  result[env::kRunId] = assignment.run_id;
  result[env::kRestartCount] = absl::StrCat(assignment.restart_count);
  result[env::kMaxRestarts] = absl::StrCat(assignment.max_restarts);
  // The worker with rank 0 serves the store itself, on MASTER_PORT.
  result[env::kUseAgentStore] = "False";

  // emplace() leaves what is there.
  result.emplace(env::kSignalsToHandle, "SIGTERM,SIGINT,SIGHUP,SIGQUIT");
  result.emplace(env::kNcclAsyncErrorHandling, "1");
  // Several workers that each start a thread per CPU are slower than one; torchrun's default too.
  if (config.nproc_per_node > 1) result.emplace(env::kOmpNumThreads, "1");
  return result;
}

std::vector<std::string> AsBlock(const Environment& environment) {
  std::vector<std::string> block;
  block.reserve(environment.size());
  for (const auto& [name, value] : environment) block.push_back(absl::StrCat(name, "=", value));
  return block;
}

std::vector<std::string> ExpandMacros(const std::vector<std::string>& argv, int local_rank) {
  const std::string digits = absl::StrCat(local_rank);
  std::vector<std::string> result = argv;
  for (std::size_t i = 1; i < result.size(); ++i) {
    result[i] = absl::StrReplaceAll(result[i], {{"${local_rank}", digits}});
  }
  return result;
}

worker::OutputSpec Route(bool redirected, bool teed, const std::string& file,
                         const std::string& prefix) {
  worker::OutputSpec output;
  if (redirected || teed) output.file = file;
  output.to_console = teed || !redirected;
  if (teed) output.prefix = prefix;
  return output;
}

}  // namespace

std::vector<worker::WorkerSpec> LayOutRanks(const LaunchConfig& config,
                                            const rendezvous::Assignment& assignment,
                                            const Environment& base, const AttemptLogs& logs) {
  Environment environment = NodeEnvironment(config, assignment, base);
  std::vector<worker::WorkerSpec> specs;
  for (int local_rank = 0; local_rank < config.nproc_per_node; ++local_rank) {
    const RankLogs& files = logs.ranks.at(static_cast<std::size_t>(local_rank));
    worker::WorkerSpec& spec = specs.emplace_back();
    spec.rank = assignment.base_rank + local_rank;
    spec.local_rank = local_rank;
    spec.role = config.role;
    spec.argv = ExpandMacros(config.program.argv, local_rank);
    spec.error_file = files.error_file;

    environment[env::kRank] = absl::StrCat(spec.rank);
    environment[env::kLocalRank] = absl::StrCat(local_rank);
    environment[env::kRoleRank] = absl::StrCat(assignment.role_base_rank + local_rank);
    environment[env::kErrorFile] = files.error_file;
    spec.env = AsBlock(environment);

    const Streams redirects = config.redirects.For(local_rank);
    const Streams tee = config.tee.For(local_rank);
    const std::string prefix = absl::StrCat("[", config.role, local_rank, "]:");
    spec.stdout_spec = Route(HasStdout(redirects), HasStdout(tee), files.stdout_log, prefix);
    spec.stderr_spec = Route(HasStderr(redirects), HasStderr(tee), files.stderr_log, prefix);
    spec.stderr_spec.keep_tail = spec.stderr_spec.file.empty();
  }
  return specs;
}

}  // namespace muster::launcher
