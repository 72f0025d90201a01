#include "trainer/comm/comm.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster::trainer {

const char* CommName(Comm comm) {
  switch (comm) {
    case Comm::kAuto:
      return "auto";
    case Comm::kGloo:
      return "gloo";
    case Comm::kNccl:
      return "nccl";
    case Comm::kShm:
      return "shm";
  }
  return "";
}

absl::StatusOr<bool> PicksNccl(Comm asked, const GpuFacts& gpus) {
  if (asked == Comm::kGloo || asked == Comm::kShm) return false;
  if (asked == Comm::kAuto && (!gpus.has_nccl || gpus.visible == 0)) return false;
  if (!gpus.has_nccl) {
    return absl::InvalidArgumentError("--comm nccl: this LibTorch was built without NCCL");
  }
  if (gpus.local_rank >= gpus.visible) {
    return absl::InvalidArgumentError(absl::StrCat("NCCL needs a GPU for local rank ",
                                                   gpus.local_rank, ", and ", gpus.visible,
                                                   gpus.visible == 1 ? " is" : " are", " visible"));
  }
  return true;
}

absl::StatusOr<CommChoice> PickComm(Comm asked, const HostLayout& layout,
                                    const std::string& shm_trouble) {
  const auto gloo = [](std::string why) { return CommChoice{Comm::kGloo, "Gloo: " + why}; };
  const auto several = [](int count, const char* what) {
    return count == 1 ? absl::StrCat("one ", what) : absl::StrCat(count, " ", what, "s");
  };
  const std::string where =
      absl::StrCat(several(layout.world_size, "rank"), " on ", several(layout.hosts, "host"));
  if (asked == Comm::kGloo) return gloo("as asked");
  if (asked == Comm::kShm && !shm_trouble.empty()) {
    return absl::UnavailableError(absl::StrCat("--comm shm: ", shm_trouble));
  }
  if (asked == Comm::kAuto) {
    if (layout.world_size == 1) return gloo("one rank, which sends nothing");
    if (layout.smallest == 1) return gloo(absl::StrCat(where, ", and on some there is only one"));
    if (!shm_trouble.empty()) return gloo(absl::StrCat("no shared memory: ", shm_trouble));
  }
  return CommChoice{Comm::kShm,
                    absl::StrCat("shared memory: ", where,
                                 layout.hosts > 1 ? ", and Gloo between the hosts" : "")};
}

}  // namespace muster::trainer
