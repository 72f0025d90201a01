#include "launcher/agent/log_layout.h"

#include <fcntl.h>
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
#include "base/unique_fd.h"

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

struct MadeDirectory {
  std::string path;
  base::UniqueFd fd;  // O_PATH
};

// Makes `prefix` + random characters. As mkdtemp(), but with as many characters as torchrun's names
// have. `root` is the path of the directory behind `parent`.
absl::StatusOr<MadeDirectory> MakeUnique(int parent, const std::string& root,
                                         const std::string& prefix) {
  constexpr int kCharacters = 8;
  // Two agents that start at once on a shared disk may draw the same name; a hundred times in a row
  // they do not.
  for (int attempt = 0; attempt < 100; ++attempt) {
    const std::string name = prefix + base::RandomName(kCharacters);
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

}  // namespace

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
      MakeUnique(parent->get(), own_root.empty() ? *root : own_root, run_id + "_");
  if (!run.ok()) return run.status();
  return LogLayout(std::move(own_root), std::move(run->path), std::move(run->fd));
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

}  // namespace muster::launcher
