// What `muster gpus` shows: the GPUs of this machine, for people and for programs.
#pragma once

#include <string>

#include "absl/status/status.h"

#include "launcher/machine/environment.h"
#include "launcher/machine/gpu_health.h"

namespace muster::launcher {

// A line of headings and one for each GPU:
//   GPU  UUID  BUS  NAME  MEMORY  TEMP  STATE
// MEMORY is what is in use, of all there is; STATE is "ok", or every fault and warning.
std::string GpuTable(const GpuHealthReport& report);

// A JSON object: `driver`, `trouble`, `kernel_log_readable`, and `gpus`, an array with an object
// for each. What is not known is null; bytes that are not UTF-8 become U+FFFD.
std::string GpusJson(const GpuHealthReport& report);

// Whether workers can be started on the GPUs that CUDA_VISIBLE_DEVICES in `environment` leaves.
// kUnavailable, in one sentence: a GPU has a fault or does not answer, or there is none.
absl::Status CheckGpus(const GpuHealthReport& report, const Environment& environment);

}  // namespace muster::launcher
