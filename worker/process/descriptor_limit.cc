#include "worker/process/descriptor_limit.h"

namespace muster::worker {
namespace {

// As the limit itself, it is the process's.
std::optional<rlim_t> limit_of_workers;

}  // namespace

void SetDescriptorLimitOfWorkers(rlim_t soft) {
  limit_of_workers = soft;
}

std::optional<rlim_t> DescriptorLimitOfWorkers() {
  return limit_of_workers;
}

}  // namespace muster::worker
