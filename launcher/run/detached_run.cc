#include "launcher/run/detached_run.h"

#include <dirent.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/failure.h"
#include "base/safe_path.h"
#include "base/safe_text.h"

namespace muster::launcher {
namespace {

constexpr char kOutput[] = ".out", kEnd[] = ".end";

// In the place of the exit code until the end, so that a full disk has room for it then; as wide as
// that is.
constexpr absl::string_view kNoCode = "    \n";

// A run id as a part of a file's name. Of one that is too long the beginning, and a digest that
// tells it from others with the same beginning: no other name has "%~".
std::string Name(const std::string& run_id) {
  constexpr std::size_t kMostBytes = 200, kDigestBytes = 8;
  std::string name = base::FileNameOf(run_id, kMostBytes);
  if (name == base::FileNameOf(run_id, std::string::npos)) return name;
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(run_id.data()), run_id.size(), digest.data());
  return absl::StrCat(name, "%~",
                      absl::BytesToHexString(absl::string_view(
                          reinterpret_cast<const char*>(digest.data()), kDigestBytes)));
}

// And the directories on the way.
absl::StatusOr<base::UniqueFd> MakeFile(const std::string& path, int flags) {
  const absl::StatusOr<base::Spot> spot = base::FindSpot(path, {.make = 0700});
  if (!spot.ok()) {
    return base::Failure(spot.status().code(), "make", path, spot.status().message());
  }
  // What has the name is of a former run with this pid.
  ::unlinkat(spot->directory.get(), spot->name.c_str(), 0);
  base::UniqueFd file(::openat(spot->directory.get(), spot->name.c_str(),
                               O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | flags, 0600));
  if (!file.valid()) return base::SystemFailure(absl::StatusCode::kInternal, "make", path);
  return file;
}

// "NAME-PID.out"
std::optional<std::pair<std::string, pid_t>> Parse(absl::string_view file) {
  if (!absl::ConsumeSuffix(&file, kOutput)) return std::nullopt;
  const std::size_t dash = file.rfind('-');
  int pid = 0;
  if (dash == absl::string_view::npos || !absl::SimpleAtoi(file.substr(dash + 1), &pid)) {
    return std::nullopt;
  }
  return std::pair(std::string(file.substr(0, dash)), pid);
}

}  // namespace

std::string DetachedDir(const Environment& environment) {
  const std::string state = GetOr(environment, "XDG_STATE_HOME", "");
  if (!state.empty()) return absl::StrCat(state, "/muster/detached");
  const std::string home = GetOr(environment, "HOME", "");
  return home.empty() ? "" : absl::StrCat(home, "/.local/state/muster/detached");
}

absl::StatusOr<DetachedRun> DetachedRun::Create(const std::string& directory,
                                                const std::string& run_id) {
  const std::string base = absl::StrCat(directory, "/", Name(run_id), "-", ::getpid());
  if (const auto other = DetachedEnd::Open({.end = base + kEnd}); other.ok() && other->lives()) {
    return base::Failure(
        absl::StatusCode::kAlreadyExists, "make", base + kEnd,
        "a live run of another container has the same name and pid; start this one again");
  }
  DetachedRun run;
  run.path_ = base + kOutput;
  // Who finds the output finds a lock already.
  absl::StatusOr<base::UniqueFd> end = MakeFile(base + kEnd, 0);
  if (!end.ok()) return end.status();
  run.end_ = *std::move(end);
  if (::flock(run.end_.get(), LOCK_EX | LOCK_NB) != 0) {
    return base::SystemFailure(absl::StatusCode::kInternal, "lock", base + kEnd);
  }
  if (::pwrite(run.end_.get(), kNoCode.data(), kNoCode.size(), 0) !=
      static_cast<ssize_t>(kNoCode.size())) {
    return base::SystemFailure(absl::StatusCode::kInternal, "write", base + kEnd);
  }
  absl::StatusOr<base::UniqueFd> output = MakeFile(run.path_, O_APPEND);
  if (!output.ok()) return output.status();
  run.output_ = *std::move(output);
  return run;
}

void DetachedRun::TakeStdio() {
  const base::UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ::dup2(nothing.get(), STDIN_FILENO);
  ::dup2(output_.get(), STDOUT_FILENO);
  ::dup2(output_.get(), STDERR_FILENO);
}

void DetachedRun::Finish(int exit_code) {
  // The file goes on saying when the run began.
  struct stat info = {};
  const bool known = ::fstat(end_.get(), &info) == 0;
  const std::string text = absl::StrCat(absl::Dec(exit_code, absl::kSpacePad4), "\n");
  [[maybe_unused]] const ssize_t written = ::pwrite(end_.get(), text.data(), text.size(), 0);
  if (!known) return;
  const timespec times[] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, info.st_mtim};
  ::futimens(end_.get(), times);
}

std::vector<FoundRun> FindDetached(const std::string& directory, const std::string& name) {
  std::vector<FoundRun> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(directory.c_str()), ::closedir);
  if (stream == nullptr) return found;
  while (const dirent* const entry = ::readdir(stream.get())) {
    const auto parsed = Parse(entry->d_name);
    if (!parsed) continue;
    const bool has_id = parsed->first == Name(name);
    if (!has_id && absl::StrCat(parsed->second) != name) continue;
    const std::string output = absl::StrCat(directory, "/", entry->d_name);
    FoundRun run{.pid = parsed->second,
                 .output = output,
                 .end = absl::StrCat(absl::StripSuffix(output, kOutput), kEnd)};
    // What no run made may keep its reader waiting, as a FIFO, or be another file by a link.
    struct stat info = {};
    if (::lstat(run.end.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    run.began = info.st_mtim;
    run.has_id = has_id;
    if (::lstat(output.c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
      found.push_back(std::move(run));
    }
  }
  std::sort(found.begin(), found.end(), [](const FoundRun& a, const FoundRun& b) {
    return std::tie(a.has_id, a.began.tv_sec, a.began.tv_nsec) >
           std::tie(b.has_id, b.began.tv_sec, b.began.tv_nsec);
  });
  return found;
}

absl::StatusOr<DetachedEnd> DetachedEnd::Open(const FoundRun& run) {
  DetachedEnd end;
  end.file_.reset(::open(run.end.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (end.file_.valid()) return end;
  return base::SystemFailure(absl::StatusCode::kInternal, "read", run.end);
}

bool DetachedEnd::lives() const {
  if (::flock(file_.get(), LOCK_SH | LOCK_NB) != 0) return true;
  ::flock(file_.get(), LOCK_UN);
  return false;
}

bool DetachedEnd::IsOf(pid_t pid) const {
  struct stat own = {};
  if (::fstat(file_.get(), &own) != 0) return false;
  const std::string directory = absl::StrCat("/proc/", pid, "/fd");
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(directory.c_str()), ::closedir);
  if (stream == nullptr) return false;
  while (const dirent* const entry = ::readdir(stream.get())) {
    struct stat open = {};
    if (::fstatat(::dirfd(stream.get()), entry->d_name, &open, 0) == 0 &&
        open.st_dev == own.st_dev && open.st_ino == own.st_ino) {
      return true;
    }
  }
  return false;
}

void DetachedEnd::Await() const {
  TEMP_FAILURE_RETRY(::flock(file_.get(), LOCK_SH));
  ::flock(file_.get(), LOCK_UN);
}

int DetachedEnd::exit_code() const {
  char text[16] = {};
  const ssize_t size = ::pread(file_.get(), text, sizeof text - 1, 0);
  int code = -1;
  return size > 0 && absl::SimpleAtoi(text, &code) ? code : -1;
}

}  // namespace muster::launcher
