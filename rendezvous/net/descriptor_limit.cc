#include "rendezvous/net/descriptor_limit.h"

#include <algorithm>

namespace muster::rendezvous {

std::optional<rlim_t> RaiseDescriptorLimit() {
  constexpr rlim_t kMost = 131'072;
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = std::min(limit.rlim_max, kMost);
  if (limit.rlim_cur <= before || setrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  return before;
}

}  // namespace muster::rendezvous
