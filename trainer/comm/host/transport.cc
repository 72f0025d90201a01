#include "trainer/comm/host/transport.h"

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

namespace {

// The same, regardless of Gloo.
absl::StatusOr<std::string> WhyNoGpu(Comm asked, const GpuFacts& gpus) {
  if (asked == Comm::kGloo || asked == Comm::kShm) {
    return absl::StrCat("--comm ", CommName(asked), " is given");
  }
  if (asked == Comm::kAuto && !gpus.has_nccl) return "LibTorch is built without NCCL";
  if (asked == Comm::kAuto && gpus.visible == 0) return "no GPU is visible";
  if (!gpus.has_nccl) {
    return absl::InvalidArgumentError("--comm nccl: this LibTorch was built without NCCL");
  }
  // All ranks of a host would use the first GPU.
  if (!gpus.local_rank) {
    return absl::InvalidArgumentError(
        "NCCL needs LOCAL_RANK, by which a rank knows its GPU, and it is not set: start the ranks "
        "with a launcher, or give --comm gloo");
  }
  if (*gpus.local_rank >= gpus.visible) {
    return absl::InvalidArgumentError(
        absl::StrCat("NCCL needs a GPU for local rank ", *gpus.local_rank, ", and ",
                     gpus.visible == 0   ? "none is"
                     : gpus.visible == 1 ? "1 is"
                                         : absl::StrCat(gpus.visible, " are"),
                     " visible; start at most as many ranks on a host as it has GPUs, or give "
                     "--comm gloo"));
  }
  return "";
}

}  // namespace

absl::StatusOr<std::string> WhyNotNccl(Comm asked, const GpuFacts& gpus) {
  absl::StatusOr<std::string> why = WhyNoGpu(asked, gpus);
  if (!why.ok() || why->empty() || gpus.has_gloo) return why;
  return absl::InvalidArgumentError(
      absl::StrCat("ranks without NCCL meet over Gloo, and ", *why,
                   "; this program was built without Gloo: build it with -DMUSTER_GLOO=ON and "
                   "Gloo's headers, or run it on GPUs"));
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
