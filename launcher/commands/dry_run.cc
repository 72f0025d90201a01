#include "launcher/commands/dry_run.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/redact.h"
#include "launcher/agent/rank_layout.h"
#include "launcher/machine/cpu_list.h"

namespace muster::launcher {
namespace {

constexpr char kOpen[] = "(decided at start)";

std::string ShellQuote(const std::string& word) {
  constexpr absl::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_";
  if (!word.empty() && word.find_first_not_of(std::string(kPlain)) == std::string::npos) {
    return word;
  }
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

std::string Destination(const worker::OutputSpec& output) {
  std::vector<std::string> places;
  if (output.to_console) {
    places.push_back(output.prefix.empty() ? "console"
                                           : absl::StrCat("console with ", output.prefix));
  }
  if (!output.file.empty()) places.push_back(output.file);
  return places.empty() ? "/dev/null" : absl::StrJoin(places, " and ");
}

// What of the worker's environment `own` does not have so, by name.
Environment Changes(const worker::WorkerSpec& spec, const Environment& own) {
  Environment changes;
  const auto look_at = [&](const std::vector<std::string>& block) {
    for (const std::string& entry : block) {
      const std::size_t equals = entry.find('=');
      const auto found = own.find(entry.substr(0, equals));
      if (found != own.end() && found->second == entry.substr(equals + 1)) continue;
      changes.emplace(entry.substr(0, equals), entry.substr(equals + 1));
    }
  };
  if (spec.common_env != nullptr) look_at(*spec.common_env);
  look_at(spec.env);
  return changes;
}

}  // namespace

rendezvous::Assignment SupposedAssignment(const LaunchConfig& config) {
  rendezvous::Assignment assignment;
  assignment.run_id = config.run_id;
  assignment.group_world_size = config.max_nodes;
  assignment.group_rank = std::min(config.node_rank.value_or(0), config.max_nodes - 1);
  assignment.base_rank = assignment.group_rank * config.nproc_per_node;
  assignment.world_size = config.max_nodes * config.nproc_per_node;
  assignment.role_base_rank = assignment.base_rank;
  assignment.role_world_size = assignment.world_size;
  const bool known =
      config.mode == RendezvousMode::kFixedPort || config.mode == RendezvousMode::kStatic;
  const bool tunnel = config.worker_store == WorkerStore::kTunnel;
  assignment.master_addr = tunnel                                       ? "127.0.0.1"
                           : known                                      ? config.endpoint.host
                           : config.mode == RendezvousMode::kStandalone ? "127.0.0.1"
                                                                        : kOpen;
  assignment.master_port = known && !tunnel ? config.endpoint.port : 0;
  assignment.agent_store = config.worker_store != WorkerStore::kWorker;
  assignment.store_tunnel = tunnel;
  assignment.max_restarts = config.max_restarts;
  return assignment;
}

AttemptLogs SupposedLogs(const LaunchConfig& config, const std::string& temp_dir) {
  if (config.log_dir == "/dev/null") {
    return {.directory = "", .ranks = std::vector<RankLogs>(config.nproc_per_node)};
  }
  const std::string root =
      config.log_dir.empty() ? absl::StrCat(temp_dir, "/muster_XXXXXXXX") : config.log_dir;
  return LogsIn(absl::StrCat(root, "/", config.run_id, "_XXXXXXXX/attempt_0"),
                config.nproc_per_node);
}

std::string DryRunText(const LaunchConfig& config, const Environment& own,
                       const std::vector<worker::WorkerSpec>& specs) {
  std::string out = absl::StrCat("# run id ", config.run_id, ", ", specs.size(),
                                 specs.size() == 1 ? " worker" : " workers", " on this node\n");
  if (config.max_nodes > 1) {
    absl::StrAppend(&out, "# ranks as if all ", config.max_nodes,
                    " nodes had come, each with as many workers\n");
  }
  const base::Redactor redact(ToBlock(own));
  for (const worker::WorkerSpec& spec : specs) {
    absl::StrAppend(&out, "\n# local rank ", spec.local_rank, "\n");
    for (const auto& [name, value] : Changes(spec, own)) {
      const bool open = name == "MASTER_PORT" && value == "0";
      const std::string shown =
          base::IsSecretName(name) ? std::string(base::kRedacted) : redact(value);
      absl::StrAppend(&out, name, "=", ShellQuote(open ? kOpen : shown), " \\\n");
    }
    absl::StrAppend(&out,
                    absl::StrJoin(redact.Words(spec.argv), " ",
                                  [](std::string* words, const std::string& word) {
                                    absl::StrAppend(words, ShellQuote(word));
                                  }),
                    "\n");
    absl::StrAppend(&out, "# stdout: ", Destination(spec.stdout_spec),
                    "\n# stderr: ", Destination(spec.stderr_spec), "\n");
    if (!spec.cpus.empty()) {
      absl::StrAppend(&out, "# CPUs: ", PrintCpuList({spec.cpus.begin(), spec.cpus.end()}), "\n");
    }
  }
  return out;
}

}  // namespace muster::launcher
