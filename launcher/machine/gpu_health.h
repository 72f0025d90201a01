// How well the GPUs of this machine are, as NVML and the kernel's log say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/machine/kernel_log.h"
#include "launcher/machine/nvml.h"

namespace muster::launcher {

// One device. What NVML does not tell, because the GPU or the driver is too old for it, is nullopt.
struct GpuHealth {
  GpuDevice gpu;
  std::string name;                           // "NVIDIA H100 80GB HBM3"
  std::optional<std::uint64_t> memory_used;   // bytes, with what the driver keeps for itself
  std::optional<std::uint64_t> memory_total;  // bytes
  std::optional<unsigned> temperature;        // degrees Celsius
  // Errors of its memory that could not be corrected, since the driver was loaded or the GPU reset.
  std::optional<std::uint64_t> uncorrected_errors;
  // Rows or pages of its memory will be given up at the next reset, and may fail again until then.
  bool repair_pending = false;
  // Its memory has no spare rows left.
  bool repair_failed = false;
  // Why it runs slower than it could, though nobody asked for that: "slowed by its temperature".
  std::vector<std::string> slowdowns;
  std::vector<Xid> xids;  // in the kernel's log, the oldest first

  // Why no worker should run on it, a phrase each; empty: it is fit.
  std::vector<std::string> Faults() const;
  // What is worth knowing though it may be fit, a phrase each.
  std::vector<std::string> Warnings() const;
};

struct GpuHealthReport {
  std::vector<GpuHealth> gpus;
  std::string driver;  // its version; empty: unknown
  // Why NVML does not tell of the GPUs, or not of all (GpuList); empty: it does, or there are none.
  std::string trouble;
  bool log_readable = false;  // the kernel's log, without which no Xid is known
};

// Asks NVML and reads the kernel's log `kernel_log`. Where NVML does not answer, the GPUs are those
// of the driver's files, and nothing is known of them but what the log says. As slow as ListGpus().
GpuHealthReport ReadGpuHealth(const GpuSources& sources = {},
                              const std::string& kernel_log = "/dev/kmsg");

}  // namespace muster::launcher
