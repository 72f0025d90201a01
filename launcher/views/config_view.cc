#include "launcher/views/config_view.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

#include "base/json.h"
#include "base/redact.h"
#include "base/safe_text.h"
#include "base/text.h"
#include "launcher/cli/launch_config.h"
#include "launcher/machine/cpus.h"
#include "launcher/run/rank_layout.h"

namespace muster::launcher {
namespace {

// Members in the order in which they are written here.
using base::Json;

Json Seconds(std::chrono::milliseconds time) {
  if (time == std::chrono::milliseconds::max()) return "inf";
  return static_cast<double>(time.count()) / 1000;
}

std::chrono::milliseconds ToMilliseconds(rendezvous::Duration time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time);
}

Json StreamNumbers(const Redirects& redirects) {
  if (redirects.by_local_rank.empty()) return static_cast<int>(redirects.all);
  Json by_rank = Json::object();
  for (const auto& [rank, streams] : redirects.by_local_rank) {
    by_rank[std::to_string(rank)] = static_cast<int>(streams);
  }
  return by_rank;
}

}  // namespace

std::string ConfigText(const LaunchConfig& config, const base::Redactor& redact) {
  Json out;
  out["command"] = redact.Words(config.program.argv);
  out["nnodes"] = {{"min", config.min_nodes}, {"max", config.max_nodes}};
  out["nproc_per_node"] = config.nproc_per_node;
  out["node_rank"] = config.node_rank ? Json(*config.node_rank) : Json();
  out["topology"] = config.topology;
  out["role"] = config.role;
  out["devices"] = config.devices;
  out["virtual_local_rank"] = config.virtual_local_rank;
  out["numa_binding"] =
      config.numa_binding ? Json(WordFor(kNumaModes, *config.numa_binding)) : Json();
  out["rendezvous"] = WordFor(kRendezvousModes, config.mode);
  out["endpoint"] =
      config.mode == RendezvousMode::kStandalone ? Json() : Json(ToString(config.endpoint));
  out["run_id"] = config.run_id;
  out["timeouts"] = {{"join", Seconds(config.timeouts.join)},
                     {"last_call", Seconds(config.timeouts.last_call)},
                     {"lease", Seconds(config.timeouts.lease)},
                     {"keep_alive_interval", Seconds(config.timeouts.keep_alive_interval)},
                     {"connect", Seconds(config.timeouts.connect)},
                     {"reconnect", Seconds(config.timeouts.reconnect)}};
  out["trust_refusals"] = config.trust_refusals;
  out["token"] = {{"file", config.token.file},
                  {"fd", config.token.fd < 0 ? Json() : Json(config.token.fd)},
                  {"insecure", config.token.insecure}};
  out["local_addr"] = config.local_addr;
  out["worker_store"] = WordFor(kWorkerStores, config.worker_store);
  out["scale_up"] = WordFor(kScaleUps, config.scale_up);
  out["max_restarts"] = config.max_restarts;
  out["restart_window"] = Seconds(ToMilliseconds(config.restart.window));
  out["restart_delay"] = {{"first", Seconds(ToMilliseconds(config.restart.delay))},
                          {"longest", Seconds(ToMilliseconds(config.restart.longest_delay))}};
  out["no_progress_limit"] = config.restart.no_progress_limit;
  out["no_retry_exit_codes"] = Json::array();
  for (const ExitCodeRange& range : config.final_exit_codes) {
    out["no_retry_exit_codes"].push_back({range.first, range.last});
  }
  out["retry_usage_errors"] = config.retry_usage_errors;
  out["hang"] = {{"timeout", Seconds(config.hang.timeout)},
                 {"first_beat_timeout", Seconds(config.hang.first_beat_timeout)},
                 {"signs", WordFor(kHangSigns, config.hang.output_counts)},
                 {"action", WordFor(kHangActions, config.hang.action)},
                 {"stack_command", config.hang.stack_command}};
  out["straggler_threshold"] = config.straggler_threshold;
  out["health_check"] = {{"command", config.health.command},
                         {"timeout", Seconds(config.health.timeout)}};
  out["drain_interval"] = Seconds(config.drain_interval);
  out["health_endpoint"] =
      config.health_endpoint ? Json(ToString(*config.health_endpoint)) : Json();
  out["http"] = config.http ? Json(ToString(*config.http)) : Json();
  for (const int signal : config.stop_signals) {
    out["signals_to_handle"].push_back(base::SignalName(signal));
  }
  out["shutdown_timeout"] = Seconds(config.shutdown_timeout);
  out["leftovers"] = WordFor(kLeftoverPolicies, config.leftovers);
  out["exit_code"] = WordFor(kExitCodePolicies, config.exit_code);
  out["log_dir"] = config.log_dir;
  out["redirects"] = StreamNumbers(config.redirects);
  out["tee"] = StreamNumbers(config.tee);
  out["local_ranks_filter"] = config.local_ranks_filter;
  out["duplicate_stdout_filters"] = config.stdout_filters;
  out["duplicate_stderr_filters"] = config.stderr_filters;
  out["prefix_lines"] = config.prefix_lines;
  out["log_line_prefix_template"] = config.prefix_template;
  out["event_log"] = config.event_log;
  out["log_level"] = WordFor(kLogLevels, config.log_level);
  out["detach"] = config.detach;
  base::RedactTexts(redact, out);
  // A path may hold any bytes; what is no UTF-8 is shown as such.
  return base::SafeJson(base::JsonText(out, /*indent=*/2)) + "\n";
}

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
  if (config.log_dir == kNoLogs || (config.log_dir.empty() && temp_dir.empty())) {
    return {.directory = "", .ranks = std::vector<RankLogs>(config.nproc_per_node)};
  }
  const std::string root =
      config.log_dir.empty() ? absl::StrCat(temp_dir, "/muster_XXXXXXXX") : config.log_dir;
  return LogsIn(absl::StrCat(root, "/", RunPrefix(config.run_id), "XXXXXXXX/attempt_0"),
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
