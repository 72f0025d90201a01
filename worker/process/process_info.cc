#include "worker/process/process_info.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/unique_fd.h"

namespace muster::worker {
namespace {

// Fields of /proc/PID/stat, counted from the one after the name (man 5 proc).
enum Field : std::size_t {
  kState = 0,
  kParent = 1,
  kGroup = 2,
  kSession = 3,
  kStartTime = 19,
  kFieldsNeeded = 20
};

// One read: what the kernel writes there is far smaller, and a second read could be about another
// process.
std::string ReadOnce(pid_t pid, const char* name) {
  const std::string path = absl::StrCat("/proc/", pid, "/", name);
  const base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return "";
  char text[8192];
  ssize_t count;
  do {
    count = ::read(file.get(), text, sizeof text);
  } while (count < 0 && errno == EINTR);
  return count > 0 ? std::string(text, static_cast<std::size_t>(count)) : "";
}

// Whether `signal` is in the set of that name in /proc/PID/status: "SigIgn:\t0000000000001000".
bool InSet(const std::string& status, const std::string& name, int signal) {
  const std::size_t at = status.find(name);
  if (at == std::string::npos) return false;
  const std::uint64_t set = std::strtoull(&status[at + name.size()], nullptr, 16);
  return (set >> (signal - 1) & 1) != 0;
}

}  // namespace

std::optional<ProcessInfo> ReadProcess(pid_t pid) {
  const std::string stat = ReadOnce(pid, "stat");
  // "123 (name) S 1 ...", where the name may contain anything.
  const std::size_t name = stat.find('(');
  const std::size_t end_of_name = stat.rfind(')');
  if (end_of_name == std::string::npos || end_of_name + 2 > stat.size()) return std::nullopt;
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::string_view(stat).substr(end_of_name + 2), ' ');
  ProcessInfo info;
  info.pid = pid;
  info.name = stat.substr(name + 1, end_of_name - name - 1);
  if (fields.size() < kFieldsNeeded || !absl::SimpleAtoi(fields[kParent], &info.parent) ||
      !absl::SimpleAtoi(fields[kGroup], &info.group) ||
      !absl::SimpleAtoi(fields[kSession], &info.session) ||
      !absl::SimpleAtoi(fields[kStartTime], &info.start_time)) {
    return std::nullopt;
  }
  info.zombie = fields[kState] == "Z" || fields[kState] == "X";
  return info;
}

std::vector<ProcessInfo> ReadProcesses() {
  std::vector<ProcessInfo> processes;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  if (proc == nullptr) return processes;
  while (const dirent* entry = ::readdir(proc.get())) {
    const pid_t pid = static_cast<pid_t>(std::atoi(entry->d_name));
    if (pid <= 0) continue;
    if (std::optional<ProcessInfo> info = ReadProcess(pid)) processes.push_back(*std::move(info));
  }
  return processes;
}

std::vector<ProcessInfo> ReadOwnChildren() {
  std::vector<ProcessInfo> children;
  std::ifstream list(absl::StrCat("/proc/self/task/", ::getpid(), "/children"));
  for (pid_t pid; list >> pid;) {
    if (std::optional<ProcessInfo> info = ReadProcess(pid)) children.push_back(*std::move(info));
  }
  if (list.is_open()) return children;
  // A kernel without CONFIG_PROC_CHILDREN, or the /proc of another pid namespace.
  children = ReadProcesses();
  std::erase_if(children, [](const ProcessInfo& info) { return info.parent != ::getpid(); });
  return children;
}

std::vector<ProcessInfo> WithDescendants(const std::vector<ProcessInfo>& all,
                                         const std::set<pid_t>& roots) {
  std::multimap<pid_t, const ProcessInfo*> by_parent;
  std::vector<const ProcessInfo*> found;
  for (const ProcessInfo& info : all) {
    if (roots.contains(info.pid)) {
      found.push_back(&info);
    } else {
      by_parent.emplace(info.parent, &info);
    }
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [begin, end] = by_parent.equal_range(found[i]->pid);
    for (auto child = begin; child != end; ++child) found.push_back(child->second);
  }
  std::vector<ProcessInfo> result;
  for (const ProcessInfo* info : found) result.push_back(*info);
  return result;
}

bool SignalProcess(const ProcessInfo& info, int signal) {
  const base::UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, info.pid, 0)));
  if (!pidfd.valid()) return false;
  // From here on the descriptor means one process for ever: is it the one?
  const std::optional<ProcessInfo> now = ReadProcess(info.pid);
  if (!now.has_value() || now->start_time != info.start_time) return false;
  return ::syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0) == 0;
}

std::optional<Disposition> DispositionOf(pid_t pid, int signal) {
  const std::string status = ReadOnce(pid, "status");
  if (InSet(status, "SigIgn:\t", signal)) return Disposition::kIgnored;
  if (InSet(status, "SigCgt:\t", signal)) return Disposition::kCaught;
  return status.empty() ? std::nullopt : std::optional(Disposition::kDefault);
}

std::string Describe(const ProcessInfo& info) {
  return absl::StrCat(info.name, " (pid ", info.pid, ")");
}

}  // namespace muster::worker
