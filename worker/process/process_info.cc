#include "worker/process/process_info.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <vector>

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

// A single read: the kernel's text is far smaller, and a second read could be about another
// process.
std::string ReadOnce(pid_t pid, const char* name) {
  const std::string path = absl::StrCat("/proc/", pid, "/", name);
  const base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return "";
  char text[8192];
  const ssize_t count = TEMP_FAILURE_RETRY(::read(file.get(), text, sizeof text));
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
  // The pidfd refers to one process for good: check that it is the right one.
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

namespace {

using Words = std::vector<std::string>;

bool Contains(const Words& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The process's cgroup: the end of "4:memory:/job-7", or of "0::/job-7" for version 2.
std::optional<std::string> OwnPlace(std::string_view controller, std::string_view self_cgroup) {
  for (const absl::string_view line : absl::StrSplit(std::string(self_cgroup), '\n')) {
    const Words fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    const Words controllers = absl::StrSplit(fields[1], ',');
    if (controller.empty() ? fields[0] == "0" : Contains(controllers, controller)) return fields[2];
  }
  return std::nullopt;
}

// A mounted hierarchy, or its part from `root` on.
struct Mount {
  std::string root;
  std::string point;
};

// Parses "32 31 0:29 /root /mount/point rw,relatime - cgroup cgroup rw,memory".
std::optional<Mount> ReadMount(std::string_view controller, const std::string& line) {
  const std::vector<std::string> halves = absl::StrSplit(line, absl::MaxSplits(" - ", 1));
  if (halves.size() != 2) return std::nullopt;
  const Words left = absl::StrSplit(halves[0], ' ');
  const Words right = absl::StrSplit(halves[1], ' ');
  if (left.size() < 5 || right.size() < 3) return std::nullopt;
  const Words options = absl::StrSplit(right[2], ',');
  const bool matches = controller.empty() ? right[0] == "cgroup2"
                                          : right[0] == "cgroup" && Contains(options, controller);
  return matches ? std::optional(Mount{left[3], left[4]}) : std::nullopt;
}

}  // namespace

std::string CgroupPath::Name() const {
  return directory.size() > mount_size ? directory.substr(mount_size) : "/";
}

std::optional<CgroupPath> CgroupPath::Parent() const {
  if (directory.size() <= mount_size) return std::nullopt;
  return CgroupPath{directory.substr(0, directory.rfind('/')), mount_size};
}

std::optional<CgroupPath> FindCgroup(std::string_view controller, std::string_view self_cgroup,
                                     std::string_view mountinfo) {
  const std::optional<std::string> place = OwnPlace(controller, self_cgroup);
  if (!place.has_value()) return std::nullopt;
  const Words lines = absl::StrSplit(std::string(mountinfo), '\n');
  for (const std::string& line : lines) {
    const std::optional<Mount> mount = ReadMount(controller, line);
    if (!mount.has_value()) continue;
    // A container may see only a part of the hierarchy; the path then begins with that part's root.
    const std::string root = mount->root == "/" ? "" : mount->root;
    if (!place->starts_with(root)) continue;
    std::string rest = place->substr(root.size());
    if (rest == "/") rest.clear();
    if (!rest.empty() && rest.front() != '/') continue;
    return CgroupPath{mount->point + rest, mount->point.size()};
  }
  return std::nullopt;
}

std::optional<CgroupPath> FindOwnCgroup(std::string_view controller) {
  return FindCgroup(controller, ReadSmallFile("/proc/self/cgroup"),
                    ReadSmallFile("/proc/self/mountinfo"));
}

std::string ReadSmallFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  // Not by stream buffer iterators, which throw on a read error.
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace muster::worker
