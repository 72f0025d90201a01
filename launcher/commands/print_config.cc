#include "launcher/commands/print_config.h"

#include <chrono>

#include "base/json.h"
#include "base/redact_json.h"
#include "base/signal_names.h"
#include "launcher/config/words.h"

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
  return base::JsonText(out, /*indent=*/2) + "\n";
}

}  // namespace muster::launcher
