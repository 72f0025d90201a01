#include "worker/tree/orphan_hunt.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>

#include "worker/env_names.h"
#include "worker/process/directory_entries.h"

namespace muster::worker {
namespace {

constexpr timespec kBetweenRounds{0, 10'000'000};
// Seconds in which a marked process that is no orphan may become one: a process that was killed
// loses its environment a moment before its children lose it.
constexpr std::time_t kPatience = 2;
constexpr int kMaxCgroupDepth = 8;

ssize_t ReadSome(int file, char* buffer, std::size_t size) {
  ssize_t count;
  do {
    count = read(file, buffer, size);
  } while (count < 0 && errno == EINTR);
  return count;
}

// Finds "NAME=...mark..." among the zero-terminated entries of an environment that arrives in
// pieces. The marks of the value have colons between them.
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
  // What came so far is how the name, or the mark, begins; at_ is how much of it.
  bool matches_ = true;
  std::size_t at_ = 0;
};

// Fields of /proc/PID/stat, counted from one as proc(5) does.
enum StatField { kParent = 4, kVirtualSize = 23, kEnvStart = 50, kEnvEnd = 51, kStatFields = 52 };

// All of them from the fourth on, in their places; what is no number is zero. False when the
// process is gone.
bool ReadStat(int process, std::uint64_t (&fields)[kStatFields]) {
  const int file = openat(process, "stat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char text[1024];
  const ssize_t count = ReadSome(file, text, sizeof text - 1);
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

// Unknown in the middle of an exec: the new program has no environment yet, and the old one's is
// gone, perhaps under our hands.
Marked LookForMark(int process, const char* mark) {
  const int file = openat(process, "environ", O_RDONLY | O_CLOEXEC);
  if (file < 0) return Marked::kNo;
  MarkFinder finder(mark);
  bool found = false;
  std::uint64_t size = 0;
  char buffer[4096];
  ssize_t count;
  while (!found && (count = ReadSome(file, buffer, sizeof buffer)) > 0) {
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

pid_t PidOf(const char* name) {
  pid_t pid = 0;
  for (; *name != '\0'; ++name) {
    if (*name < '0' || *name > '9') return 0;
    pid = pid * 10 + (*name - '0');
  }
  return pid;
}

// One that is in the middle of an exec counts as marked: it will be looked at again.
enum class Found { kNothing, kMarked, kKilled };

// Everything is asked of one open /proc/PID, which never comes to mean another process; so the
// pidfd, which was there before it, is either this process's or the kill fails.
Found KillIfOrphan(int proc, const char* name, const char* mark) {
  const pid_t pid = PidOf(name);
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
    // Not ours, it seems: its parent has had the time to die, or its exec to end.
    if (found == Found::kMarked && Seconds() - last_kill > kPatience) return false;
    nanosleep(&kBetweenRounds, nullptr);
  }
}

bool RemoveCgroupTree(const char* path) {
  return RemoveBelow(AT_FDCWD, path, kMaxCgroupDepth);
}

}  // namespace muster::worker
