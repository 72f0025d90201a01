#include "trainer/worker/available_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>

#include "absl/strings/match.h"

namespace muster::trainer {
namespace {

constexpr std::int64_t kKibibyte = 1024;

std::int64_t OfMachine(const std::string& root) {
  std::ifstream file(root + "/proc/meminfo");
  std::string word;
  while (file >> word) {
    std::int64_t kibibytes = 0;
    if (word == "MemAvailable:" && file >> kibibytes) return kibibytes * kKibibyte;
  }
  return 0;
}

// The number in a file; nullopt when there is none, as in one that says "max".
std::optional<std::int64_t> NumberIn(const std::string& path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

// "/a/b", this process's place in the one hierarchy of version 2.
std::string ControlGroup(const std::string& root) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (absl::StartsWith(line, "0::")) return line.substr(3);
  }
  return "";
}

}  // namespace

std::int64_t AvailableMemory(const std::string& root) {
  std::int64_t least = OfMachine(root);
  if (least == 0) least = std::numeric_limits<std::int64_t>::max();
  for (std::string group = ControlGroup(root); absl::StartsWith(group, "/");
       group.resize(group.rfind('/'))) {
    const std::string folder = root + "/sys/fs/cgroup" + group;
    const auto most = NumberIn(folder + "/memory.max");
    const auto now = NumberIn(folder + "/memory.current");
    if (most && now) least = std::min(least, std::max<std::int64_t>(*most - *now, 1));
    if (group == "/") break;
  }
  return least == std::numeric_limits<std::int64_t>::max() ? 0 : least;
}

}  // namespace muster::trainer
