#include "worker/process/cgroup_paths.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <vector>

#include "absl/strings/str_split.h"

namespace muster::worker {
namespace {

using Words = std::vector<std::string>;

bool Contains(const Words& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The process's place in the hierarchy: the end of "4:memory:/job-7", or of "0::/job-7" for v2.
std::optional<std::string> OwnPlace(std::string_view controller, std::string_view self_cgroup) {
  for (const absl::string_view line : absl::StrSplit(std::string(self_cgroup), '\n')) {
    const Words fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    const Words controllers = absl::StrSplit(fields[1], ',');
    if (controller.empty() ? fields[0] == "0" : Contains(controllers, controller)) return fields[2];
  }
  return std::nullopt;
}

// A mounted hierarchy, or a part of one from `root` on.
struct Mount {
  std::string root;
  std::string point;
};

// From a line "32 31 0:29 /root /mount/point rw,relatime - cgroup cgroup rw,memory".
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
    // A container may see a part of the hierarchy only: then that part's root begins the place.
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
  // Not by iterators of its buffer, which throw where a read fails.
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace muster::worker
