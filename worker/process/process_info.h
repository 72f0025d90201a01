// Facts from /proc about processes, and a race-free way to signal one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace muster::worker {

// One process at the time when /proc was read.
struct ProcessInfo {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  // Dead, and not waited for yet.
  bool zombie = false;
  // Start time in clock ticks since boot. A pid may be reused, but pid and start time together
  // identify one process.
  std::uint64_t start_time = 0;
  // The kernel's short name: "python3".
  std::string name;
};

// nullopt if there is no such process.
std::optional<ProcessInfo> ReadProcess(pid_t pid);

// All processes of this pid namespace, including zombies, in no order. Those that start or exit
// meanwhile may be missing. Takes about 10 us per process.
std::vector<ProcessInfo> ReadProcesses();

// The children of this process, including zombies, without reading the machine's other processes,
// of which there may be thousands. May miss a child that starts or exits meanwhile, and one that
// another, still running thread has started: the main thread owns its own children, those of exited
// threads, and adopted orphans (find_new_reaper in the kernel's exit.c). Other threads' lists are
// not read: the kernel would cache /proc entries for each thread, and their removal delays reaping
// of the process.
std::vector<ProcessInfo> ReadOwnChildren();

// Those of `all` that are in `roots` or descend from one of them through others in `all`.
std::vector<ProcessInfo> WithDescendants(const std::vector<ProcessInfo>& all,
                                         const std::set<pid_t>& roots);

// Sends `signal` to the process of `info`, never to another one with its pid. False if it is gone
// or may not be signalled.
bool SignalProcess(const ProcessInfo& info, int signal);

// How a process handles a signal.
enum class Disposition { kDefault, kIgnored, kCaught };

// nullopt if the process is gone.
std::optional<Disposition> DispositionOf(pid_t pid, int signal);

// "python3 (pid 17)".
std::string Describe(const ProcessInfo& info);

// Locates this process's control groups in the file system.

// A control group's directory.
struct CgroupPath {
  // "/sys/fs/cgroup/user.slice/job-7", without a slash at the end.
  std::string directory;
  // The length of its mount point: the hierarchy's root as visible here.
  std::size_t mount_size = 0;

  // "/user.slice/job-7": its usual name.
  std::string Name() const;
  // The parent group; nullopt for the root.
  std::optional<CgroupPath> Parent() const;

  bool operator==(const CgroupPath&) const = default;
};

// This process's group in the unified (v2) hierarchy if `controller` is empty, else in that v1
// hierarchy, such as "memory". The texts are those of /proc/self/cgroup and /proc/self/mountinfo
// (man 7 cgroups, man 5 proc). nullopt if there is no such hierarchy, or if no mount shows the
// group.
std::optional<CgroupPath> FindCgroup(std::string_view controller, std::string_view self_cgroup,
                                     std::string_view mountinfo);

// The same, reading these two files.
std::optional<CgroupPath> FindOwnCgroup(std::string_view controller);

// The content of a small file of /proc or of a control group; empty if it cannot be read.
std::string ReadSmallFile(const std::string& path);

}  // namespace muster::worker
