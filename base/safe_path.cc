#include "base/safe_path.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "base/failure.h"
#include "base/text.h"
#include "base/unique_fd.h"

namespace muster::base {
namespace {

// The kernel's own limit (man 7 path_resolution).
constexpr int kMostLinks = 40;

absl::Status SystemError(int error = errno) {
  const auto code =
      error == ENOENT ? absl::StatusCode::kNotFound : absl::StatusCode::kFailedPrecondition;
  return absl::Status(code, SystemCause(error));
}

bool IsOn(int fd, long file_system) {
  struct statfs system = {};
  return ::fstatfs(fd, &system) == 0 && system.f_type == file_system;
}

// In a user namespace the kernel shows owners that are not mapped as this id.
bool IsUnknownHere(uid_t owner) {
  constexpr uid_t kOverflow = 65534;
  if (owner != kOverflow) return false;
  std::ifstream map("/proc/self/uid_map");
  unsigned long first = 0, outside = 0, count = 0;
  constexpr unsigned long kAll = 4294967295;
  return static_cast<bool>(map >> first >> outside >> count) && count != kAll;
}

bool EveryUserWrites(const struct stat& directory) {
  return (directory.st_mode & S_IWOTH) != 0;
}

bool EveryUserRenames(const struct stat& directory) {
  return EveryUserWrites(directory) && (directory.st_mode & S_ISVTX) == 0;
}

class Walk {
 public:
  Walk(const std::string& path, const PathOptions& options) : options_(options) { Prepend(path); }

  absl::Status Begin() {
    if (rest_.empty() && !from_root_) return SystemError(ENOENT);
    return Restart();
  }

  // Walks to the directory of the last part, and returns that part without entering it.
  absl::StatusOr<Spot> ToLast() {
    while (rest_.size() > 1) {
      if (absl::Status entered = Enter(); !entered.ok()) return entered;
    }
    std::string name = rest_.empty() ? "." : rest_.back();
    rest_.clear();
    UniqueFd directory = DuplicateAboveStdio(directory_.get());
    if (!directory.valid()) return SystemError();
    return Spot{std::move(directory), std::move(name)};
  }

  absl::StatusOr<UniqueFd> ToEnd() {
    while (!rest_.empty()) {
      if (absl::Status entered = Enter(); !entered.ok()) return entered;
    }
    return std::move(directory_);
  }

  // `name`, the last part, is a symbolic link: continues at its target.
  absl::Status FollowLast(const std::string& name) {
    const UniqueFd link(::openat(directory_.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat info = {};
    if (!link.valid() || ::fstat(link.get(), &info) != 0) return SystemError();
    if (S_ISLNK(info.st_mode)) return Follow(name, link.get(), info);
    // It was a link a moment ago. The limit keeps another user from swapping it endlessly.
    if (++links_ > kMostLinks) return SystemError(ELOOP);
    rest_.push_back(name);
    return absl::OkStatus();
  }

  // Whether a file found under this name may be used.
  absl::Status CheckFound(const std::string& name, const struct stat& info) const {
    if (!EveryUserWrites(facts_) || IsOurs(info.st_uid)) return absl::OkStatus();
    return absl::PermissionDeniedError(absl::StrCat(
        PathOf(name), " is owned by user id ", info.st_uid,
        ", in a directory where every user can create files; remove it, or choose another path"));
  }

  bool is_in_proc() const { return IsOn(directory_.get(), PROC_SUPER_MAGIC); }

 private:
  // Puts the parts of `path` before the remaining ones.
  void Prepend(const std::string& path) {
    from_root_ = path.starts_with('/');
    const std::vector<std::string> parts = absl::StrSplit(path, '/', absl::SkipEmpty());
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      if (*part != ".") rest_.push_back(*part);
    }
    // "." alone is the directory in which the walk begins.
    if (!path.empty() && rest_.empty()) rest_.push_back(".");
  }

  absl::Status Restart() {
    directory_.reset(::open(from_root_ ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!directory_.valid() || ::fstat(directory_.get(), &facts_) != 0) return SystemError();
    where_ = from_root_ ? "/" : ".";
    return CheckDirectory(where_, facts_);
  }

  std::string PathOf(const std::string& name) const {
    return where_ == "/"   ? absl::StrCat("/", name)
           : where_ == "." ? name
                           : absl::StrCat(where_, "/", name);
  }

  absl::Status Enter() {
    const std::string name = std::move(rest_.back());
    rest_.pop_back();
    constexpr int kLook = O_PATH | O_NOFOLLOW | O_CLOEXEC;
    UniqueFd next(::openat(directory_.get(), name.c_str(), kLook));
    if (!next.valid() && errno == ENOENT && options_.make.has_value()) {
      // Another process may be creating it at the same time.
      if (::mkdirat(directory_.get(), name.c_str(), *options_.make) != 0 && errno != EEXIST) {
        return SystemError();
      }
      next.reset(::openat(directory_.get(), name.c_str(), kLook));
    }
    struct stat info = {};
    if (!next.valid() || ::fstat(next.get(), &info) != 0) return SystemError();
    if (S_ISLNK(info.st_mode)) return Follow(name, next.get(), info);
    if (!S_ISDIR(info.st_mode)) return SystemError(ENOTDIR);
    // An automount point is mounted only when a path goes through it (man 2 open, O_PATH).
    if (info.st_dev != facts_.st_dev && IsOn(next.get(), AUTOFS_SUPER_MAGIC)) {
      next.reset(::openat(directory_.get(), absl::StrCat(name, "/.").c_str(), O_PATH | O_CLOEXEC));
      if (!next.valid() || ::fstat(next.get(), &info) != 0) return SystemError();
    }
    if (name != "." && name != "..") {
      if (absl::Status status = CheckFound(name, info); !status.ok()) return status;
    }
    return GoTo(std::move(next), info, PathOf(name));
  }

  absl::Status GoTo(UniqueFd directory, const struct stat& facts, std::string where) {
    if (absl::Status status = CheckDirectory(where, facts); !status.ok()) return status;
    directory_ = std::move(directory);
    facts_ = facts;
    where_ = std::move(where);
    return absl::OkStatus();
  }

  absl::Status CheckDirectory(const std::string& where, const struct stat& info) const {
    if (!options_.ours_alone) return absl::OkStatus();
    if (!IsOurs(info.st_uid)) {
      return absl::PermissionDeniedError(
          absl::StrCat(where, " is owned by user id ", info.st_uid,
                       ", who could change its contents; choose another path"));
    }
    if (EveryUserRenames(info)) {
      return absl::PermissionDeniedError(absl::StrCat("every user could rename files in ", where,
                                                      "; `chmod +t ", where,
                                                      "`, or choose another path"));
    }
    return absl::OkStatus();
  }

  absl::Status Follow(const std::string& name, int link, const struct stat& info) {
    if (++links_ > kMostLinks) return SystemError(ELOOP);
    if (is_in_proc()) return FollowKernels(name);
    const uid_t culprit = IsOurs(info.st_uid) ? facts_.st_uid : info.st_uid;
    if (!IsOurs(culprit) || EveryUserRenames(facts_)) {
      return absl::PermissionDeniedError(absl::StrCat(
          PathOf(name), " is a symbolic link that ",
          IsOurs(culprit) ? std::string("every user") : absl::StrCat("the user with id ", culprit),
          " could redirect; give the path that it points to"));
    }
    std::string target(PATH_MAX, '\0');
    const ssize_t size = ::readlinkat(link, "", target.data(), target.size());
    if (size < 0) return SystemError();
    target.resize(static_cast<std::size_t>(size));
    if (target.empty()) return SystemError(ENOENT);
    Prepend(target);
    return from_root_ ? Restart() : absl::OkStatus();
  }

  // The text of such a link is informational only; the kernel alone can follow it.
  absl::Status FollowKernels(const std::string& name) {
    UniqueFd next(::openat(directory_.get(), name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    struct stat info = {};
    if (!next.valid() || ::fstat(next.get(), &info) != 0) return SystemError();
    return GoTo(std::move(next), info, PathOf(name));
  }

  const PathOptions options_;
  bool from_root_ = false;
  // The remaining parts, the next one last.
  std::vector<std::string> rest_;

  // The current directory.
  UniqueFd directory_;
  struct stat facts_ = {};
  std::string where_;
  int links_ = 0;
};

// As openat(), but with O_CREAT an existing file is opened and not created, since its owner must
// then be checked. Sets `made` if the file is new.
UniqueFd OpenAt(const Spot& spot, int flags, mode_t mode, bool& made) {
  constexpr int kTries = 10;
  made = false;
  const int there = flags & ~(O_CREAT | O_EXCL);
  UniqueFd file;
  // The file may appear and disappear between the two calls.
  for (int i = 0; i < kTries; ++i) {
    if ((flags & O_CREAT) != 0) {
      file.reset(::openat(spot.directory.get(), spot.name.c_str(), flags | O_EXCL, mode));
      made = file.valid();
      if (made || errno != EEXIST || (flags & O_EXCL) != 0) return file;
    }
    file.reset(::openat(spot.directory.get(), spot.name.c_str(), there));
    if (file.valid() || errno != ENOENT || (flags & O_CREAT) == 0) return file;
  }
  return file;
}

}  // namespace

bool IsOurs(uid_t owner) {
  return owner == 0 || owner == ::geteuid() || IsUnknownHere(owner);
}

absl::StatusOr<Spot> FindSpot(const std::string& path, const PathOptions& options) {
  Walk walk(path, options);
  if (absl::Status begun = walk.Begin(); !begun.ok()) return begun;
  return walk.ToLast();
}

absl::StatusOr<UniqueFd> OpenDirectory(const std::string& path, const PathOptions& options) {
  Walk walk(path, options);
  if (absl::Status begun = walk.Begin(); !begun.ok()) return begun;
  return walk.ToEnd();
}

absl::StatusOr<UniqueFd> OpenFile(const std::string& path, int flags, mode_t mode,
                                  const PathOptions& options) {
  Walk walk(path, options);
  if (absl::Status begun = walk.Begin(); !begun.ok()) return begun;
  for (;;) {
    const absl::StatusOr<Spot> spot = walk.ToLast();
    if (!spot.ok()) return spot.status();
    bool made = false;
    UniqueFd file = OpenAt(*spot, flags | O_NOFOLLOW | O_CLOEXEC, mode, made);
    if (made) return file;
    struct stat info = {};
    if (file.valid()) {
      if (::fstat(file.get(), &info) != 0) return SystemError();
      if (absl::Status status = walk.CheckFound(spot->name, info); !status.ok()) return status;
      return file;
    }
    if (errno != ELOOP) return SystemError();
    if ((flags & O_NOFOLLOW) != 0) return absl::FailedPreconditionError(OpenCause(ELOOP));
    if (walk.is_in_proc()) {
      file.reset(::openat(spot->directory.get(), spot->name.c_str(), flags | O_CLOEXEC, mode));
      if (!file.valid()) return SystemError();
      return file;
    }
    if (absl::Status followed = walk.FollowLast(spot->name); !followed.ok()) return followed;
  }
}

namespace {

bool IsOwnDirectory(const struct stat& info) {
  return S_ISDIR(info.st_mode) && info.st_uid == geteuid();
}

// Names in the directory that begin with `prefix` and are directories of this user that no other
// user can write to.
std::vector<std::string> OwnDirectories(const std::string& parent, const std::string& prefix) {
  std::vector<std::string> names;
  const absl::StatusOr<UniqueFd> place = OpenDirectory(parent);
  if (!place.ok()) return names;
  UniqueFd readable(openat(place->get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!readable.valid()) return names;
  // fdopendir() takes ownership of the descriptor.
  DIR* const stream = fdopendir(readable.release());
  if (stream == nullptr) return names;
  while (const dirent* const entry = readdir(stream)) {
    struct stat info = {};
    if (absl::StartsWith(entry->d_name, prefix) &&
        fstatat(dirfd(stream), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        IsOwnDirectory(info) && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0) {
      names.emplace_back(entry->d_name);
    }
  }
  closedir(stream);
  // Sorted, so that processes started at different times choose the same one.
  std::sort(names.begin(), names.end());
  return names;
}

std::string NameOfUser() {
  return absl::StrCat("muster-", geteuid());
}

std::string WithoutSlash(std::string directory) {
  // lstat() and open() follow a link if a slash stands behind its name.
  while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
  return directory;
}

}  // namespace

UserPlace UserPlaceOf(absl::FunctionRef<std::string(const char*)> variable) {
  return {.chosen = WithoutSlash(variable("MUSTER_RUNS_DIR")),
          .runtime = WithoutSlash(variable("XDG_RUNTIME_DIR"))};
}

std::vector<std::string> UserFolders(const UserPlace& place) {
  constexpr int kRandom = 12;
  if (!place.chosen.empty()) return {place.chosen};
  std::vector<std::string> folders;
  if (!place.runtime.empty()) folders.push_back(place.runtime + "/muster");

  const std::string prefix = NameOfUser() + "-";
  for (const std::string& temp : place.temps) {
    const std::vector<std::string> own = OwnDirectories(temp, prefix);
    for (const std::string& name : own) folders.push_back(absl::StrCat(temp, "/", name));
    if (own.empty()) folders.push_back(absl::StrCat(temp, "/", prefix, RandomName(kRandom)));
  }

  const std::string usual = absl::StrCat("/run/user/", geteuid(), "/muster");
  if (std::find(folders.begin(), folders.end(), usual) == folders.end()) folders.push_back(usual);

  struct stat info = {};
  for (const std::string& temp : place.temps) {
    const std::string before = absl::StrCat(temp, "/", NameOfUser());
    if (lstat(before.c_str(), &info) == 0 && IsOwnDirectory(info)) folders.push_back(before);
  }
  return folders;
}

std::vector<std::string> FoldersForOne(const UserPlace& place) {
  if (!place.chosen.empty()) return {place.chosen};
  std::vector<std::string> folders;
  if (!place.runtime.empty()) folders.push_back(place.runtime + "/muster");
  for (const std::string& temp : place.temps) {
    folders.push_back(absl::StrCat(temp, "/", NameOfUser(), "-0"));
  }
  for (const std::string& folder : UserFolders(place)) {
    if (std::find(folders.begin(), folders.end(), folder) == folders.end()) {
      folders.push_back(folder);
    }
  }
  return folders;
}

}  // namespace muster::base
