#include "launcher/run/run_registry.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/failure.h"
#include "base/safe_path.h"
#include "base/text.h"

namespace muster::launcher {
namespace {

constexpr char kSuffix[] = ".json";
constexpr char kNewSuffix[] = ".tmp";
// Far above what a run writes; a larger file is not ours.
constexpr off_t kMaxBytes = 1 << 20;

// A directory and how it is called in messages.
struct Directory {
  base::UniqueFd fd;
  std::string path;

  std::string PathOf(const std::string& name) const { return absl::StrCat(path, "/", name); }
};

// Ours alone, and what it says it is. NotFound when there is nothing of that name.
absl::StatusOr<Directory> OpenAt(const base::Spot& spot, const std::string& path) {
  const base::UniqueFd found(
      openat(spot.directory.get(), spot.name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat info = {};
  if (!found.valid() || fstat(found.get(), &info) != 0) {
    return base::SystemFailure(
        errno == ENOENT ? absl::StatusCode::kNotFound : absl::StatusCode::kInternal, "look at",
        path);
  }
  const auto refuse = [&path](const char* why) {
    return base::Failure(absl::StatusCode::kPermissionDenied, "use", path, why);
  };
  if (S_ISLNK(info.st_mode)) return refuse("it is a symbolic link");
  if (!S_ISDIR(info.st_mode)) return refuse("it is not a directory");
  if (info.st_uid != geteuid()) return refuse("it belongs to another user");
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) return refuse("other users can write to it");
  base::UniqueFd directory(openat(found.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) {
    return base::SystemFailure(absl::StatusCode::kInternal, "open", path);
  }
  return Directory{std::move(directory), path};
}

absl::StatusOr<base::Spot> Find(const char* attempt, const std::string& path) {
  absl::StatusOr<base::Spot> spot = base::FindSpot(path);
  if (spot.ok()) return spot;
  return base::Failure(spot.status().code(), attempt, path, spot.status().message());
}

absl::StatusOr<Directory> Open(const std::string& path) {
  const absl::StatusOr<base::Spot> spot = Find("look at", path);
  if (!spot.ok()) return spot.status();
  return OpenAt(*spot, path);
}

absl::StatusOr<Directory> Make(const std::string& path) {
  const absl::StatusOr<base::Spot> spot = Find("make", path);
  if (!spot.ok()) return spot.status();
  if (mkdirat(spot->directory.get(), spot->name.c_str(), 0700) != 0 && errno != EEXIST) {
    return base::SystemFailure(absl::StatusCode::kInternal, "make", path);
  }
  return OpenAt(*spot, path);
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

// Whether `name` still names the file that `info` is of.
bool StillNamed(const Directory& directory, const std::string& name, const struct stat& info) {
  struct stat now = {};
  return fstatat(directory.fd.get(), name.c_str(), &now, AT_SYMLINK_NOFOLLOW) == 0 &&
         now.st_dev == info.st_dev && now.st_ino == info.st_ino;
}

// Adds the run with the files `base`.* to `list`, or removes them when it is dead.
void Look(const Directory& directory, const std::string& base, RunList& list) {
  const std::string name = base + kSuffix;
  const std::string path = directory.PathOf(name);
  // Its owner may replace the file in the middle of this; then the new one is looked at.
  for (;;) {
    // Not blocking, should it be a FIFO.
    const base::UniqueFd file(
        openat(directory.fd.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
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
      if (!StillNamed(directory, name, info)) continue;
      unlinkat(directory.fd.get(), name.c_str(), 0);
      unlinkat(directory.fd.get(), (base + kNewSuffix).c_str(), 0);
      return;
    }
    list.runs.push_back(*std::move(run));
    return;
  }
}

// The names of runs in the directory, in order. A directory that is read while files are renamed in
// it may show one of them under both names or twice. Sets errno to 0, or to why there may be more.
std::set<std::string> NamesIn(const Directory& directory) {
  std::set<std::string> names;
  // Takes a descriptor over.
  DIR* const stream = fdopendir(base::DuplicateAboveStdio(directory.fd.get()).release());
  if (stream == nullptr) return names;
  while (errno = 0, true) {
    const dirent* const entry = readdir(stream);
    if (entry == nullptr) break;
    absl::string_view name = entry->d_name;
    if (absl::ConsumeSuffix(&name, kSuffix) || absl::ConsumeSuffix(&name, kNewSuffix)) {
      names.emplace(name);
    }
  }
  const int error = errno;
  closedir(stream);
  errno = error;
  return names;
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

RunRegistration::RunRegistration(base::UniqueFd directory, std::string path, std::string name)
    : directory_(std::move(directory)), path_(std::move(path)), name_(std::move(name)) {}

RunRegistration::~RunRegistration() {
  // Before the lock goes: who finds the file without one takes its owner for dead.
  if (file_.valid()) unlinkat(directory_.get(), (name_ + kSuffix).c_str(), 0);
}

absl::StatusOr<std::unique_ptr<RunRegistration>> RunRegistration::Register(
    const std::vector<std::string>& dirs, const RunInfo& info) {
  absl::Status first_failure;
  for (const std::string& dir : dirs) {
    absl::StatusOr<Directory> made = Make(dir);
    absl::Status status = made.status();
    if (status.ok()) {
      std::unique_ptr<RunRegistration> registration(
          new RunRegistration(std::move(made->fd), dir, FileName(info.run_id)));
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
  const std::string name = name_ + kSuffix;
  const std::string new_name = name_ + kNewSuffix;
  const std::string new_path = absl::StrCat(path_, "/", new_name);
  base::UniqueFd file(openat(directory_.get(), new_name.c_str(),
                             O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.get() < 0) return base::SystemFailure(absl::StatusCode::kInternal, "make", new_path);
  absl::Status status;
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    status = base::SystemFailure(absl::StatusCode::kInternal, "lock", new_path);
  }
  status.Update(WriteAll(file.get(), WriteRunInfo(info), new_path));
  if (status.ok() &&
      renameat(directory_.get(), new_name.c_str(), directory_.get(), name.c_str()) != 0) {
    status = base::SystemFailure(absl::StatusCode::kInternal, "rename",
                                 absl::StrCat(new_path, " to ", name));
  }
  if (!status.ok()) {
    unlinkat(directory_.get(), new_name.c_str(), 0);
    return status;
  }
  file_ = std::move(file);
  shown_ = info;
  return absl::OkStatus();
}

RunList ListRuns(const std::vector<std::string>& dirs) {
  RunList list;
  for (const std::string& dir : dirs) {
    const absl::StatusOr<Directory> directory = Open(dir);
    if (!directory.ok()) {
      if (!absl::IsNotFound(directory.status())) {
        list.warnings.emplace_back(directory.status().message());
      }
      continue;
    }
    const std::set<std::string> names = NamesIn(*directory);
    if (errno != 0) {
      list.warnings.push_back(absl::StrCat("read ", dir, ": ", base::SystemCause()));
    }
    for (const std::string& name : names) Look(*directory, name, list);
  }
  std::sort(list.runs.begin(), list.runs.end(), [](const RunInfo& a, const RunInfo& b) {
    return std::tie(a.since, a.pid) < std::tie(b.since, b.pid);
  });
  return list;
}

}  // namespace muster::launcher
