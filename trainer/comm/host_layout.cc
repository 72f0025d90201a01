#include "trainer/comm/host_layout.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>

#include "absl/strings/str_cat.h"

namespace muster::trainer {
namespace {

// Such as "pid:[4026531836]".
std::string Namespace(const std::string& kind) {
  std::array<char, 64> text;
  const ssize_t length =
      readlink(absl::StrCat("/proc/self/ns/", kind).c_str(), text.data(), text.size());
  return std::string(text.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
}

}  // namespace

std::string HostId() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat shm {};
  stat("/dev/shm", &shm);  // all 0 when there is none, and then nobody can use it
  // The segment is readable by its user alone.
  return absl::StrCat(boot, " ", Namespace("pid"), " ", Namespace("net"), " ", shm.st_dev, ":",
                      shm.st_ino, " ", geteuid())
      .substr(0, kHostIdBytes);
}

HostLayout LayOutHosts(const std::vector<std::string>& host_of_rank, int rank) {
  HostLayout layout{.world_size = static_cast<int>(host_of_rank.size())};
  std::map<std::string, int> hosts;  // their numbers
  std::vector<int> sizes;
  for (int other = 0; other < layout.world_size; ++other) {
    const std::string& id = host_of_rank[static_cast<std::size_t>(other)];
    const auto [host, is_new] = hosts.emplace(id, static_cast<int>(sizes.size()));
    if (is_new) {
      layout.leaders.push_back(other);
      sizes.push_back(0);
    }
    ++sizes[static_cast<std::size_t>(host->second)];
    if (other == rank) layout.host = host->second;
    if (id != host_of_rank[static_cast<std::size_t>(rank)]) continue;
    if (other == rank) layout.local_index = static_cast<int>(layout.local_ranks.size());
    layout.local_ranks.push_back(other);
  }
  layout.hosts = static_cast<int>(sizes.size());
  layout.smallest = *std::min_element(sizes.begin(), sizes.end());
  return layout;
}

}  // namespace muster::trainer
