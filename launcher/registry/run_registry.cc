#include "launcher/registry/run_registry.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/failure.h"
#include "base/random_name.h"
#include "base/unique_fd.h"

namespace muster::launcher {
namespace {

namespace fs = std::filesystem;

constexpr char kSuffix[] = ".json";
constexpr char kNewSuffix[] = ".tmp";
// Far above what a run writes; a larger file is not ours.
constexpr off_t kMaxBytes = 1 << 20;

// Ours alone, and what it says it is. NotFound when there is nothing of that name.
absl::Status CheckDir(const std::string& dir) {
  struct stat info = {};
  if (lstat(dir.c_str(), &info) != 0) {
    return base::SystemFailure(
        errno == ENOENT ? absl::StatusCode::kNotFound : absl::StatusCode::kInternal, "look at",
        dir);
  }
  const auto refuse = [&dir](const char* why) {
    return base::Failure(absl::StatusCode::kPermissionDenied, "use", dir, why);
  };
  if (S_ISLNK(info.st_mode)) return refuse("it is a symbolic link");
  if (!S_ISDIR(info.st_mode)) return refuse("it is not a directory");
  if (info.st_uid != geteuid()) return refuse("it belongs to another user");
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) return refuse("others may write to it");
  return absl::OkStatus();
}

absl::Status MakeDir(const std::string& dir) {
  if (mkdir(dir.c_str(), 0700) != 0 && errno != EEXIST) {
    return base::SystemFailure(absl::StatusCode::kInternal, "make", dir);
  }
  return CheckDir(dir);
}

absl::Status WriteAll(int fd, const std::string& text, const std::string& path) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = write(fd, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return base::SystemFailure(absl::StatusCode::kInternal, "write", path);
    done += static_cast<std::size_t>(written);
  }
  return absl::OkStatus();
}

std::optional<std::string> ReadAll(int fd, off_t size) {
  std::string text(static_cast<std::size_t>(size), '\0');
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t got = read(fd, text.data() + done, text.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    done += static_cast<std::size_t>(got);
  }
  return text;
}

// Whether `path` still names the file that `info` is of.
bool StillNamed(const std::string& path, const struct stat& info) {
  struct stat now = {};
  return lstat(path.c_str(), &now) == 0 && now.st_dev == info.st_dev && now.st_ino == info.st_ino;
}

// Adds the run with the files `base`.* to `list`, or removes them when it is dead.
void Look(const std::string& base, RunList& list) {
  const std::string path = base + kSuffix;
  // Its owner may replace the file in the middle of this; then the new one is looked at.
  for (;;) {
    // Not blocking, should it be a FIFO.
    const base::UniqueFd file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat info = {};
    if (file.get() < 0 && errno == ENOENT) return;
    if (file.get() < 0 || fstat(file.get(), &info) != 0) {
      list.warnings.push_back(absl::StrCat("read ", path, ": ", base::SystemCause()));
      return;
    }
    if (!S_ISREG(info.st_mode) || info.st_size > kMaxBytes) {
      list.warnings.push_back(absl::StrCat("read ", path, ": not a file that a run wrote"));
      return;
    }
    // What no run wrote is somebody else's, who has named this directory by mistake.
    const auto text = ReadAll(file.get(), info.st_size);
    auto run = text ? ReadRunInfo(*text) : std::nullopt;
    if (!run) {
      list.warnings.push_back(absl::StrCat("read ", path, ": not what a run writes"));
      return;
    }
    // Shared: two who list at the same time must not take each other for a living run.
    if (flock(file.get(), LOCK_SH | LOCK_NB) == 0) {
      if (!StillNamed(path, info)) continue;
      unlink(path.c_str());
      unlink((base + kNewSuffix).c_str());
      return;
    }
    list.runs.push_back(*std::move(run));
    return;
  }
}

// A file name for people who look into the directory: run ids hold no slash, but be sure.
std::string FileName(const std::string& run_id) {
  std::string name = run_id.substr(0, 64);
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char c) { return !absl::ascii_isalnum(c) && c != '-' && c != '_'; }, '_');
  return absl::StrCat(name, "-", base::RandomName(8));
}

}  // namespace

std::vector<std::string> RunsDirs(const Environment& environment) {
  const auto without_slash = [](std::string dir) {
    // lstat() would follow a link behind which a slash stands.
    while (dir.size() > 1 && dir.back() == '/') dir.pop_back();
    return dir;
  };
  const std::string chosen = GetOr(environment, "MUSTER_RUNS_DIR", "");
  if (!chosen.empty()) return {without_slash(chosen)};

  std::vector<std::string> dirs;
  const std::string runtime = GetOr(environment, "XDG_RUNTIME_DIR", "");
  if (!runtime.empty()) dirs.push_back(without_slash(runtime) + "/muster");
  dirs.push_back(absl::StrCat("/tmp/muster-", geteuid()));
  const std::string usual = absl::StrCat("/run/user/", geteuid(), "/muster");
  if (std::find(dirs.begin(), dirs.end(), usual) == dirs.end()) dirs.push_back(usual);
  return dirs;
}

RunRegistration::RunRegistration(std::string path_without_suffix)
    : base_(std::move(path_without_suffix)) {}

RunRegistration::~RunRegistration() {
  // Before the lock goes: who finds the file without one takes its owner for dead.
  if (file_.valid()) unlink((base_ + kSuffix).c_str());
}

absl::StatusOr<std::unique_ptr<RunRegistration>> RunRegistration::Register(
    const std::vector<std::string>& dirs, const RunInfo& info) {
  absl::Status first_failure;
  for (const std::string& dir : dirs) {
    absl::Status status = MakeDir(dir);
    if (status.ok()) {
      std::unique_ptr<RunRegistration> registration(
          new RunRegistration(absl::StrCat(dir, "/", FileName(info.run_id))));
      status = registration->Write(info);
      if (status.ok()) return registration;
    }
    first_failure.Update(status);
  }
  return first_failure.ok() ? absl::InternalError("register the run: no directory is named")
                            : first_failure;
}

absl::Status RunRegistration::Update(const RunInfo& info) {
  return info == shown_ ? absl::OkStatus() : Write(info);
}

absl::Status RunRegistration::Write(const RunInfo& info) {
  const std::string path = base_ + kSuffix;
  const std::string new_path = base_ + kNewSuffix;
  base::UniqueFd file(
      open(new_path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.get() < 0) return base::SystemFailure(absl::StatusCode::kInternal, "make", new_path);
  absl::Status status;
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    status = base::SystemFailure(absl::StatusCode::kInternal, "lock", new_path);
  }
  status.Update(WriteAll(file.get(), WriteRunInfo(info), new_path));
  if (status.ok() && rename(new_path.c_str(), path.c_str()) != 0) {
    status = base::SystemFailure(absl::StatusCode::kInternal, "rename",
                                 absl::StrCat(new_path, " to ", path));
  }
  if (!status.ok()) {
    unlink(new_path.c_str());
    return status;
  }
  file_ = std::move(file);
  shown_ = info;
  return absl::OkStatus();
}

RunList ListRuns(const std::vector<std::string>& dirs) {
  RunList list;
  for (const std::string& dir : dirs) {
    const absl::Status usable = CheckDir(dir);
    if (!usable.ok()) {
      if (!absl::IsNotFound(usable)) list.warnings.emplace_back(usable.message());
      continue;
    }
    // A directory that is read while files are renamed in it may show one of them under both names
    // or twice.
    std::set<fs::path> bases;
    std::error_code error;
    for (fs::directory_iterator entry(dir, error), end; !error && entry != end;
         entry.increment(error)) {
      const fs::path& path = entry->path();
      const bool is_entry = path.extension() == kSuffix || path.extension() == kNewSuffix;
      if (is_entry) bases.insert(path.parent_path() / path.stem());
    }
    for (const fs::path& base : bases) Look(base, list);
    if (error) list.warnings.push_back(absl::StrCat("read ", dir, ": ", error.message()));
  }
  std::sort(list.runs.begin(), list.runs.end(), [](const RunInfo& a, const RunInfo& b) {
    return std::tie(a.since, a.pid) < std::tie(b.since, b.pid);
  });
  return list;
}

}  // namespace muster::launcher
