#include "launcher/run/rank_layout.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

#include "base/failure.h"
#include "base/safe_path.h"
#include "base/safe_text.h"
#include "base/text.h"
#include "launcher/machine/devices.h"
#include "worker/env_names.h"

namespace muster::launcher {
namespace {

namespace fs = std::filesystem;

constexpr char kAttempt[] = "attempt_";

absl::Status CannotMake(const std::string& directory, absl::string_view cause) {
  return base::Failure(absl::StatusCode::kFailedPrecondition, "cannot create log directory",
                       directory, cause);
}

// In the directory behind `parent`, for this user only: workers print secrets. Each is made by that
// descriptor, so that the way there is looked at once (safe_path.h). AlreadyExists if there is
// something of that name; `path` is what the error names.
absl::Status MakePrivate(int parent, const std::string& name, const std::string& path) {
  if (mkdirat(parent, name.c_str(), 0700) == 0) return absl::OkStatus();
  const int error = errno;
  if (error == EEXIST) return absl::AlreadyExistsError(base::SystemCause(error));
  return CannotMake(path, base::SystemCause(error));
}

// As many random characters as torchrun's names have.
constexpr int kUniqueCharacters = 8;

struct MadeDirectory {
  std::string path;
  base::UniqueFd fd;  // O_PATH
};

// Makes `prefix` + random characters, as mkdtemp() does. `root` is the path of the directory behind
// `parent`.
absl::StatusOr<MadeDirectory> MakeUnique(int parent, const std::string& root,
                                         const std::string& prefix) {
  // Two agents that start at once on a shared disk may draw the same name; a hundred times in a row
  // they do not.
  for (int attempt = 0; attempt < 100; ++attempt) {
    const std::string name = prefix + base::RandomName(kUniqueCharacters);
    std::string path = absl::StrCat(root, "/", name);
    const absl::Status made = MakePrivate(parent, name, path);
    if (absl::IsAlreadyExists(made)) continue;
    if (!made.ok()) return made;
    base::UniqueFd fd(openat(parent, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd.valid()) return CannotMake(path, base::SystemCause());
    return MadeDirectory{std::move(path), std::move(fd)};
  }
  return absl::AlreadyExistsError(
      absl::StrCat("cannot create log directory ", root, "/", prefix, "*: all names are taken"));
}

// The names are read before any of them is removed: the order of reading would not be defined else.
std::vector<std::string> DirectoriesIn(const std::string& directory) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->symlink_status(error).type() == fs::file_type::directory) {
      found.push_back(entry->path());
    }
  }
  return found;
}

// A worker may change its directory, and must still find its files.
absl::StatusOr<std::string> Absolute(const std::string& directory) {
  std::error_code error;
  std::string path = fs::absolute(directory, error);
  if (error) return CannotMake(directory, error.message());
  return path;
}

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
  // As with torchrun, what was to go to a file stays on the console where there are no logs.
  output.to_console = way.shown && (way.teed || output.file.empty());
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

absl::StatusOr<std::string> LogDirOf(const LaunchConfig& config, const TempDir& temp) {
  if (!config.log_dir.empty() || !temp.path.empty()) return config.log_dir;
  if (config.asks_for_logs()) {
    return absl::FailedPreconditionError(
        "--redirects, --tee or a filter needs log files, and no temporary directory is writable; "
        "name a directory with --log-dir");
  }
  return kNoLogs;
}

absl::StatusOr<LogLayout> LogLayout::Create(const std::string& log_dir, const std::string& run_id,
                                            const std::string& temp_dir) {
  if (log_dir == "/dev/null") return LogLayout("", "", base::UniqueFd());
  auto root = Absolute(log_dir.empty() ? temp_dir : log_dir);
  if (!root.ok()) return root.status();
  absl::StatusOr<base::UniqueFd> parent =
      log_dir.empty() ? base::OpenDirectory(*root) : base::OpenDirectory(*root, {.make = 0777});
  if (!parent.ok()) {
    return CannotMake(log_dir.empty() ? *root + "/muster_*" : *root, parent.status().message());
  }
  std::string own_root;
  if (log_dir.empty()) {
    absl::StatusOr<MadeDirectory> own = MakeUnique(parent->get(), *root, "muster_");
    if (!own.ok()) return own.status();
    own_root = std::move(own->path);
    parent = std::move(own->fd);
  }
  absl::StatusOr<MadeDirectory> run =
      MakeUnique(parent->get(), own_root.empty() ? *root : own_root, RunPrefix(run_id));
  if (!run.ok()) return run.status();
  return LogLayout(std::move(own_root), std::move(run->path), std::move(run->fd));
}

std::string RunPrefix(const std::string& run_id) {
  return base::FileNameOf(run_id, NAME_MAX - 1 - kUniqueCharacters) + "_";
}

AttemptLogs LogsIn(const std::string& directory, int nproc) {
  AttemptLogs logs{.directory = directory,
                   .ranks = {},
                   .filtered_stdout_log = directory + "/filtered_stdout.log",
                   .filtered_stderr_log = directory + "/filtered_stderr.log"};
  for (int local_rank = 0; local_rank < nproc; ++local_rank) {
    const std::string of_rank = absl::StrCat(directory, "/", local_rank);
    logs.ranks.push_back({.directory = of_rank,
                          .stdout_log = of_rank + "/stdout.log",
                          .stderr_log = of_rank + "/stderr.log",
                          .error_file = of_rank + "/error.json"});
  }
  return logs;
}

absl::StatusOr<AttemptLogs> LogLayout::BeginAttempt(int restart_count,
                                                    rendezvous::RoundNumber round,
                                                    int nproc) const {
  if (run_directory_.empty()) {
    return AttemptLogs{.directory = "", .ranks = std::vector<RankLogs>(nproc)};
  }
  std::string name = absl::StrCat(kAttempt, restart_count);
  std::string attempt = absl::StrCat(run_directory_, "/", name);
  absl::Status made = MakePrivate(run_fd_->get(), name, attempt);
  if (absl::IsAlreadyExists(made)) {
    absl::StrAppend(&name, ".round", round);
    attempt = absl::StrCat(run_directory_, "/", name);
    made = MakePrivate(run_fd_->get(), name, attempt);
  }
  if (absl::IsAlreadyExists(made)) return CannotMake(attempt, made.message());
  if (!made.ok()) return made;
  return LogsIn(attempt, nproc);
}

void LogLayout::RemoveEmpty() const {
  if (run_directory_.empty()) return;
  // By the names that BeginAttempt gives: workers may have put directories of theirs beside these.
  for (const std::string& attempt : DirectoriesIn(run_directory_)) {
    if (!absl::StartsWith(fs::path(attempt).filename().string(), kAttempt)) continue;
    for (const std::string& rank : DirectoriesIn(attempt)) {
      int local_rank = 0;
      if (absl::SimpleAtoi(fs::path(rank).filename().string(), &local_rank)) rmdir(rank.c_str());
    }
    rmdir(attempt.c_str());
  }
  // Each of them fails where there is something left.
  rmdir(run_directory_.c_str());
  if (!own_root_.empty()) rmdir(own_root_.c_str());
}

bool HasLogs(const std::string& run_directory) {
  std::error_code error;
  for (fs::recursive_directory_iterator entry(run_directory, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->symlink_status(error).type() != fs::file_type::directory) return true;
  }
  return false;
}

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
