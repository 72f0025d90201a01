#include "launcher/flags/flag_setters.h"

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/seconds.h"
#include "launcher/flags/rdzv_conf.h"
#include "launcher/machine/nproc.h"
#include "rendezvous/core/names.h"

namespace muster::launcher {
namespace {

// Where a value is right, it is put into place; else its status is the problem.
template <typename T, typename Field>
Problem Put(const absl::StatusOr<T>& parsed, Field& field) {
  if (!parsed.ok()) return std::string(parsed.status().message());
  field = *parsed;
  return std::nullopt;
}

Problem SetText(absl::string_view value, std::string& field) {
  field = std::string(value);
  return std::nullopt;
}

Problem SetSwitch(absl::string_view value, bool& field) {
  bool on = false;
  int number = 0;
  if (absl::SimpleAtoi(value, &number)) {
    // torchrun takes any whole number: bool(int(value)).
    on = number != 0;
  } else if (!absl::SimpleAtob(value, &on)) {
    return "is neither 0 nor 1; set it to one of them";
  }
  field = on;
  return std::nullopt;
}

Problem SetCount(absl::string_view value, absl::string_view what, int& field) {
  int number = 0;
  if (!absl::SimpleAtoi(value, &number) || number < 0) {
    return absl::StrCat("is not a number of ", what, "; give a whole number from 0");
  }
  field = number;
  return std::nullopt;
}

// Ids and roles become file names and keys on every node, so they are plain names.
Problem SetName(absl::string_view value, const char* what, std::string& field) {
  const absl::Status status = rendezvous::CheckName(what, std::string(value));
  if (!status.ok()) return absl::StrCat("is not usable: ", status.message());
  return SetText(value, field);
}

Problem SetHost(absl::string_view value, std::string& field) {
  return value.empty() ? SetText(value, field) : Put(rendezvous::ParseHost(value), field);
}

}  // namespace

Problem SetNodes(absl::string_view value, RunFlags& flags) {
  const std::vector<absl::string_view> parts = absl::StrSplit(value, ':');
  int min = 0;
  int max = 0;
  if (parts.size() > 2 || !absl::SimpleAtoi(parts.front(), &min) ||
      !absl::SimpleAtoi(parts.back(), &max)) {
    return "is not a number of nodes; write N or MIN:MAX";
  }
  if (min < 1) return "asks for no node; write N or MIN:MAX with numbers from 1";
  if (min > max) return "has its minimum above its maximum; write MIN:MAX with MIN <= MAX";
  flags.min_nodes = min;
  flags.max_nodes = max;
  flags.nodes_given = true;
  return std::nullopt;
}

Problem SetNproc(absl::string_view value, RunFlags& flags) {
  // A machine that has everything: what is wrong there is wrong everywhere. flags.cc asks the real
  // one.
  const auto count = ParseNproc(value, Machine{.cpus = 1, .nvidia_devices = 1}, {});
  if (!count.ok()) return std::string(count.status().message());
  flags.nproc_given = true;
  return SetText(value, flags.nproc_per_node);
}

Problem SetNodeRank(absl::string_view value, RunFlags& flags) {
  int rank = 0;
  if (!absl::SimpleAtoi(value, &rank) || rank < 0) {
    return "is not a node rank; give a whole number from 0";
  }
  flags.node_rank = rank;
  return std::nullopt;
}

Problem SetBackend(absl::string_view value, RunFlags& flags) {
  if (value == "c10d" || value == "static" || value == "muster") {
    return SetText(value, flags.rdzv_backend);
  }
  if (value == "etcd" || value == "etcd-v2") {
    return "is not supported, and no etcd is needed; use c10d";
  }
  return "is not a rendezvous backend; use c10d, static or muster";
}

Problem SetEndpoint(absl::string_view value, RunFlags& flags) {
  if (!value.empty()) {
    const auto endpoint = rendezvous::ParseEndpoint(value, rendezvous::kDefaultRendezvousPort);
    if (!endpoint.ok()) return std::string(endpoint.status().message());
  }
  // Whether a port may be missing depends on the backend, so flags.cc reads it again.
  return SetText(value, flags.rdzv_endpoint);
}

Problem SetRdzvId(absl::string_view value, RunFlags& flags) {
  return value.empty() ? SetText(value, flags.rdzv_id) : SetName(value, "run id", flags.rdzv_id);
}

Problem SetRdzvConf(absl::string_view value, RunFlags& flags) {
  const auto conf = ParseRdzvConf(value);
  if (!conf.ok()) return std::string(conf.status().message());
  flags.timeouts = conf->timeouts;
  flags.join_timeout_given = conf->join_given;
  flags.is_host = conf->is_host;
  flags.trust_refusals = conf->trust_refusals;
  return std::nullopt;
}

Problem SetShutdownTimeout(absl::string_view value, RunFlags& flags) {
  if (value == "inf" || value == "infinite") {
    flags.shutdown_timeout = std::chrono::milliseconds::max();
    return std::nullopt;
  }
  const auto timeout = base::ParseSeconds(value);
  if (!timeout) return "is not a time; give a number of seconds from 0, or inf";
  flags.shutdown_timeout = *timeout;
  return std::nullopt;
}

Problem SetExitCode(absl::string_view value, RunFlags& flags) {
  if (value != "torchrun" && value != "worker") {
    return "is not a rule for the exit code; use torchrun or worker";
  }
  flags.exit_code = value == "worker" ? ExitCodePolicy::kWorker : ExitCodePolicy::kTorchrun;
  return std::nullopt;
}

Problem SetLogLevel(absl::string_view value, RunFlags& flags) {
  const std::string level = absl::AsciiStrToLower(value);
  if (level == "debug") {
    flags.log_level = LogLevel::kDebug;
  } else if (level == "info") {
    flags.log_level = LogLevel::kInfo;
  } else if (level == "warning" || level == "warn") {
    flags.log_level = LogLevel::kWarning;
  } else if (level == "error" || level == "critical") {
    flags.log_level = LogLevel::kError;
  } else {
    return "is not a log level; use debug, info, warning or error";
  }
  return std::nullopt;
}

Problem SetRole(absl::string_view value, RunFlags& flags) {
  return SetName(value, "role", flags.role);
}
Problem SetStandalone(absl::string_view value, RunFlags& flags) {
  return SetSwitch(value, flags.standalone);
}
Problem SetMasterAddr(absl::string_view value, RunFlags& flags) {
  return SetHost(value, flags.master_addr);
}
Problem SetMasterPort(absl::string_view value, RunFlags& flags) {
  return Put(rendezvous::ParsePort(value), flags.master_port);
}
Problem SetLocalAddr(absl::string_view value, RunFlags& flags) {
  return SetHost(value, flags.local_addr);
}
Problem SetModule(absl::string_view value, RunFlags& flags) {
  return SetSwitch(value, flags.module);
}
Problem SetNoPython(absl::string_view value, RunFlags& flags) {
  return SetSwitch(value, flags.no_python);
}
Problem SetMaxRestarts(absl::string_view value, RunFlags& flags) {
  return SetCount(value, "restarts", flags.max_restarts);
}
Problem SetLogDir(absl::string_view value, RunFlags& flags) {
  return SetText(value, flags.log_dir);
}
Problem SetRedirects(absl::string_view value, RunFlags& flags) {
  return Put(ParseRedirects(value), flags.redirects);
}
Problem SetTee(absl::string_view value, RunFlags& flags) {
  return Put(ParseRedirects(value), flags.tee);
}
Problem SetVirtualLocalRank(absl::string_view value, RunFlags& flags) {
  return SetSwitch(value, flags.virtual_local_rank);
}
Problem SetRunPath(absl::string_view value, RunFlags& flags) {
  return SetSwitch(value, flags.run_path);
}
Problem SetUseEnv(absl::string_view value, RunFlags& flags) {
  return SetSwitch(value, flags.use_env);
}
Problem SetDryRun(absl::string_view value, RunFlags& flags) {
  return SetSwitch(value, flags.dry_run);
}
Problem SetPrintConfig(absl::string_view value, RunFlags& flags) {
  return SetSwitch(value, flags.print_config);
}
Problem SetHelp(absl::string_view value, RunFlags& flags) {
  return SetSwitch(value, flags.help);
}
Problem SetVersion(absl::string_view value, RunFlags& flags) {
  return SetSwitch(value, flags.version);
}

}  // namespace muster::launcher
