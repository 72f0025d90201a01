#include "trainer/comm/peer_process.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

namespace muster::trainer {
namespace {

struct Stat {
  char state = 0;
  std::uint64_t start_time = 0;
};

// What /proc/PID/stat says; nothing when it cannot be read.
std::optional<Stat> ReadStat(pid_t pid) {
  std::array<char, 64> path;
  std::snprintf(path.data(), path.size(), "/proc/%d/stat", static_cast<int>(pid));
  const int fd = open(path.data(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::array<char, 1024> buffer;
  const ssize_t length = read(fd, buffer.data(), buffer.size());
  close(fd);
  if (length <= 0) return std::nullopt;

  // "pid (name) state ...", and the name may hold spaces and brackets: count from the last one. The
  // state is field 3 and the start time field 22 (proc(5)).
  const std::string line(buffer.data(), static_cast<std::size_t>(length));
  std::size_t at = line.rfind(") ");
  if (at == std::string::npos || at + 2 >= line.size()) return std::nullopt;
  at += 2;
  Stat stat{.state = line[at]};
  for (int field = 3; field < 22; ++field) {
    at = line.find(' ', at);
    if (at == std::string::npos) return std::nullopt;
    ++at;
  }
  stat.start_time = std::strtoull(line.c_str() + at, nullptr, 10);
  return stat;
}

}  // namespace

ProcessIdentity ThisProcess() {
  const pid_t pid = getpid();
  return {.pid = pid, .start_time = ReadStat(pid).value_or(Stat{}).start_time};
}

ProcessState LookAt(const ProcessIdentity& process) {
  const std::optional<Stat> stat = ReadStat(process.pid);
  if (!stat) {
    const bool no_such = kill(process.pid, 0) != 0 && errno == ESRCH;
    return no_such ? ProcessState::kGone : ProcessState::kRunning;
  }
  if (process.start_time != 0 && stat->start_time != process.start_time) {
    return ProcessState::kGone;
  }
  switch (stat->state) {
    case 'Z':
    case 'X':
    case 'x':
      return ProcessState::kGone;
    case 'T':
    case 't':
      return ProcessState::kStopped;
    default:
      return ProcessState::kRunning;
  }
}

}  // namespace muster::trainer
