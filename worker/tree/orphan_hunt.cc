#include "worker/tree/orphan_hunt.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "base/text.h"
#include "worker/env_names.h"
#include "worker/process/descriptors.h"
#include "worker/process/process_info.h"

namespace muster::worker {
namespace {

constexpr timespec kBetweenRounds{0, 10'000'000};
// Seconds in which a marked process may still become an orphan: a killed process loses its
// environment a moment before its children lose their parent.
constexpr std::time_t kPatience = 2;
constexpr int kMaxCgroupDepth = 8;

// Finds "NAME=...mark..." among the zero-terminated entries of an environment that arrives in
// pieces. The value holds marks separated by colons.
class MarkFinder {
 public:
  explicit MarkFinder(const char* mark) : mark_(mark) {}

  bool Feed(char byte) {
    if (byte == '\0') {
      const bool found = in_value_ && matches_ && mark_[at_] == '\0';
      in_value_ = false;
      matches_ = true;
      at_ = 0;
      return found;
    }
    if (!in_value_) {
      if (matches_ && env::kAgentId[at_] == '\0') {
        in_value_ = byte == '=';
        matches_ = in_value_;
        at_ = 0;
      } else {
        matches_ = matches_ && env::kAgentId[at_++] == byte;
      }
      return false;
    }
    if (byte == ':') {
      const bool found = matches_ && mark_[at_] == '\0';
      matches_ = true;
      at_ = 0;
      return found;
    }
    matches_ = matches_ && mark_[at_] == byte;
    if (matches_) ++at_;
    return false;
  }

 private:
  const char* const mark_;
  bool in_value_ = false;
  // Whether the bytes so far are a prefix of the name or the mark; at_ is its length.
  bool matches_ = true;
  std::size_t at_ = 0;
};

// Fields of /proc/PID/stat, counted from one as in proc(5).
enum StatField { kParent = 4, kVirtualSize = 23, kEnvStart = 50, kEnvEnd = 51, kStatFields = 52 };

// Reads the fields from the fourth on; those that are not numbers become zero. False if the process
// is gone.
bool ReadStat(int process, std::uint64_t (&fields)[kStatFields]) {
  const int file = openat(process, "stat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char text[1024];
  const ssize_t count = TEMP_FAILURE_RETRY(read(file, text, sizeof text - 1));
  close(file);
  if (count <= 0) return false;
  text[count] = '\0';
  // "123 (name) S 1 ...", where the name may contain anything.
  const char* at = strrchr(text, ')');
  if (at == nullptr || at[1] != ' ' || at[2] == '\0') return false;
  at += 3;
  for (int field = kParent; field < kStatFields; ++field) {
    fields[field] = 0;
    if (*at == ' ') ++at;
    for (; *at != ' ' && *at != '\0'; ++at) {
      if (*at >= '0' && *at <= '9') {
        fields[field] = fields[field] * 10 + static_cast<std::uint64_t>(*at - '0');
      }
    }
  }
  return true;
}

enum class Marked { kNo, kYes, kUnknown };

// Unknown during an exec: the new program has no environment yet, and the old one may vanish while
// it is read.
Marked LookForMark(int process, const char* mark) {
  const int file = openat(process, "environ", O_RDONLY | O_CLOEXEC);
  if (file < 0) return Marked::kNo;
  MarkFinder finder(mark);
  bool found = false;
  std::uint64_t size = 0;
  char buffer[4096];
  ssize_t count;
  while (!found && (count = TEMP_FAILURE_RETRY(read(file, buffer, sizeof buffer))) > 0) {
    size += static_cast<std::uint64_t>(count);
    for (ssize_t i = 0; i < count && !found; ++i) found = finder.Feed(buffer[i]);
  }
  close(file);
  if (found) return Marked::kYes;
  std::uint64_t stat[kStatFields];
  const bool has_memory = ReadStat(process, stat) && stat[kVirtualSize] > 0;
  if (!has_memory) return Marked::kNo;
  const bool was_read_whole = stat[kEnvEnd] > 0 && size == stat[kEnvEnd] - stat[kEnvStart];
  return was_read_whole ? Marked::kNo : Marked::kUnknown;
}

bool IsOrphanOfOurs(int process) {
  std::uint64_t stat[kStatFields];
  return ReadStat(process, stat) && stat[kParent] == static_cast<std::uint64_t>(getppid());
}

// A process in the middle of an exec counts as marked, so that it is checked again.
enum class Found { kNothing, kMarked, kKilled };

// Everything is read through one open /proc/PID, which always refers to the same process. The pidfd
// was opened before: it refers to that process, or the kill fails.
Found KillIfOrphan(int proc, const char* name, const char* mark) {
  const pid_t pid = NumberIn(name);
  if (pid <= 1 || pid == getpid()) return Found::kNothing;
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (pidfd < 0) return Found::kNothing;
  Found found = Found::kNothing;
  const int process = openat(proc, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct stat owner;
  if (process >= 0 && fstat(process, &owner) == 0 && owner.st_uid == geteuid()) {
    const Marked marked = LookForMark(process, mark);
    if (marked != Marked::kNo) found = Found::kMarked;
    if (marked == Marked::kYes && IsOrphanOfOurs(process) &&
        syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, nullptr, 0) == 0) {
      found = Found::kKilled;
    }
  }
  if (process >= 0) close(process);
  close(pidfd);
  return found;
}

Found KillOrphansOnce(const char* mark) {
  Found most = Found::kNothing;
  const int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (proc < 0) return most;
  ForEachEntry(proc, [&](const char* name, unsigned char) {
    const Found found = KillIfOrphan(proc, name, mark);
    if (found > most) most = found;
  });
  close(proc);
  return most;
}

std::time_t Seconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

bool RemoveBelow(int parent, const char* name, int depth) {
  const int directory = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (directory >= 0) {
    ForEachEntry(directory, [&](const char* entry, unsigned char type) {
      if (type != DT_DIR || entry[0] == '.' || depth == 0) return;
      RemoveBelow(directory, entry, depth - 1);
    });
    close(directory);
  }
  return unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno != EBUSY;
}

}  // namespace

bool KillOrphans(const char* mark, std::chrono::seconds limit) {
  const std::time_t end = Seconds() + limit.count();
  std::time_t last_kill = Seconds();
  for (;;) {
    const Found found = KillOrphansOnce(mark);
    if (found == Found::kNothing) return true;
    if (Seconds() >= end) return false;
    if (found == Found::kKilled) last_kill = Seconds();
    // It seems not to be ours: its parent has had time to die, or its exec to finish.
    if (found == Found::kMarked && Seconds() - last_kill > kPatience) return false;
    nanosleep(&kBetweenRounds, nullptr);
  }
}

bool RemoveCgroupTree(const char* path) {
  return RemoveBelow(AT_FDCWD, path, kMaxCgroupDepth);
}

namespace {

const std::string kPrefix = absl::StrCat(env::kAgentId, "=");

}  // namespace

const std::string& AgentMark() {
  // The pid is for people who look into /proc; the random characters make the mark unique.
  static const std::string mark = absl::StrCat(::getpid(), "-", base::RandomName(12));
  return mark;
}

void AddMark(std::string_view mark, std::vector<std::string>* env) {
  const auto entry = std::find_if(
      env->begin(), env->end(), [](const std::string& text) { return text.starts_with(kPrefix); });
  if (entry == env->end()) {
    env->push_back(kPrefix + std::string(mark));
  } else {
    entry->append(entry->size() == kPrefix.size() ? "" : ":").append(mark);
  }
}

bool HasMark(pid_t pid, std::string_view mark) {
  const std::string environment = ReadSmallFile(absl::StrCat("/proc/", pid, "/environ"));
  for (const absl::string_view entry : absl::StrSplit(environment, '\0')) {
    if (!absl::StartsWith(entry, kPrefix)) continue;
    const std::vector<std::string> marks = absl::StrSplit(entry.substr(kPrefix.size()), ':');
    return std::find(marks.begin(), marks.end(), mark) != marks.end();
  }
  return false;
}

}  // namespace muster::worker
