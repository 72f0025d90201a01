// Where this process's control groups are in the file system.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster::worker {

// A control group as a directory.
struct CgroupPath {
  // "/sys/fs/cgroup/user.slice/job-7"; no slash at the end.
  std::string directory;
  // How much of it is the mount point: the hierarchy's root, as far as it can be seen from here.
  std::size_t mount_size = 0;

  // "/user.slice/job-7": what people call it.
  std::string Name() const;
  // The group above it; nullopt for the root.
  std::optional<CgroupPath> Parent() const;

  bool operator==(const CgroupPath&) const = default;
};

// The group of this process in the unified (v2) hierarchy when `controller` is empty, or in that v1
// hierarchy: "memory". From the texts of /proc/self/cgroup and /proc/self/mountinfo (man 7 cgroups,
// man 5 proc). nullopt when there is no such hierarchy, or it is not mounted where the group can be
// seen.
std::optional<CgroupPath> FindCgroup(std::string_view controller, std::string_view self_cgroup,
                                     std::string_view mountinfo);

// The same, from those two files as they are now.
std::optional<CgroupPath> FindOwnCgroup(std::string_view controller);

// The content of a small file of /proc or of a control group; empty when it cannot be read.
std::string ReadSmallFile(const std::string& path);

}  // namespace muster::worker
