#include "trainer/comm/shared_segment.h"

#include "absl/strings/str_cat.h"

namespace muster::trainer {

absl::StatusOr<ShmSegment> MakeSharedSegment(const HostLayout& layout,
                                             const std::vector<int>& members, std::size_t bytes,
                                             const GatherText& gather) {
  absl::StatusOr<ShmSegment> segment = absl::UnavailableError("");
  if (layout.leads()) segment = ShmSegment::Create(bytes);
  const std::vector<std::string> handles =
      gather(layout.leads() && segment.ok() ? segment->handle() : "");
  const std::string& handle = handles[static_cast<std::size_t>(layout.local_ranks[0])];
  // Without a handle there is nothing to say here: the leader says why.
  if (!layout.leads() && !handle.empty()) segment = ShmSegment::Open(handle);
  const std::vector<std::string> troubles = gather(std::string(segment.status().message()));
  for (std::size_t rank = 0; rank < troubles.size(); ++rank) {
    if (troubles[rank].empty()) continue;
    return absl::UnavailableError(absl::StrCat("rank ", members[rank], ": ", troubles[rank]));
  }
  segment->Withdraw();
  return segment;
}

}  // namespace muster::trainer
