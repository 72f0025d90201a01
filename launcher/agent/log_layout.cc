#include "launcher/agent/log_layout.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/failure.h"
#include "base/random_name.h"
#include "base/safe_path.h"

namespace muster::launcher {
namespace {

namespace fs = std::filesystem;

constexpr char kAttempt[] = "attempt_";

absl::Status CannotMake(const std::string& directory, absl::string_view cause) {
  return base::Failure(absl::StatusCode::kFailedPrecondition, "cannot create log directory",
                       directory, cause);
}

// For this user only: workers print secrets. AlreadyExists if there is something of that name.
absl::Status MakePrivate(const std::string& directory) {
  const absl::StatusOr<base::Spot> spot = base::FindSpot(directory);
  if (!spot.ok()) return CannotMake(directory, spot.status().message());
  if (mkdirat(spot->directory.get(), spot->name.c_str(), 0700) == 0) return absl::OkStatus();
  const int error = errno;
  if (error == EEXIST) return absl::AlreadyExistsError(base::SystemCause(error));
  return CannotMake(directory, base::SystemCause(error));
}

// Makes `prefix` + random characters. As mkdtemp(), but with as many characters as torchrun's names
// have.
absl::StatusOr<std::string> MakeUnique(const std::string& prefix, int length) {
  // Two agents that start at once on a shared disk may draw the same name; a hundred times in a row
  // they do not.
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::string directory = absl::StrCat(prefix, base::RandomName(length));
    const absl::Status made = MakePrivate(directory);
    if (made.ok()) return directory;
    if (!absl::IsAlreadyExists(made)) return made;
  }
  return absl::AlreadyExistsError(
      absl::StrCat("cannot create log directory ", prefix, "*: all names are taken"));
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

}  // namespace

absl::StatusOr<LogLayout> LogLayout::Create(const std::string& log_dir, const std::string& run_id,
                                            const std::string& temp_dir) {
  if (log_dir == "/dev/null") return LogLayout("", "");
  auto root = Absolute(log_dir.empty() ? temp_dir : log_dir);
  if (!root.ok()) return root.status();
  if (log_dir.empty()) {
    root = MakeUnique(absl::StrCat(*root, "/muster_"), 8);
    if (!root.ok()) return root.status();
  } else {
    const auto directory = base::OpenDirectory(*root, {.make = 0777});
    if (!directory.ok()) return CannotMake(*root, directory.status().message());
  }
  auto run_directory = MakeUnique(absl::StrCat(*root, "/", run_id, "_"), 8);
  if (!run_directory.ok()) return run_directory.status();
  return LogLayout(log_dir.empty() ? *root : "", *std::move(run_directory));
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
  std::string attempt = absl::StrCat(run_directory_, "/", kAttempt, restart_count);
  absl::Status made = MakePrivate(attempt);
  if (absl::IsAlreadyExists(made)) {
    absl::StrAppend(&attempt, ".round", round);
    made = MakePrivate(attempt);
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

}  // namespace muster::launcher
