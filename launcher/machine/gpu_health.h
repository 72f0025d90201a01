// Health of this machine's GPUs, from NVML and the kernel log.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "base/unique_fd.h"
#include "launcher/machine/nvml.h"

namespace muster::launcher {

// An Xid: NVIDIA's driver logs one for each GPU fault. https://docs.nvidia.com/deploy/xid-errors/

struct Xid {
  std::string pci_bus_id;  // as /sys/bus/pci/devices spells it: "0000:3b:00.0"
  int number = 0;          // 79
  pid_t pid = 0;     // of the process that used the GPU, in the initial PID namespace; 0: unknown
  std::string text;  // "GPU has fallen off the bus."; may be empty

  bool operator==(const Xid&) const = default;
};

// Parses "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus." with
// anything before it. nullopt for any other line.
std::optional<Xid> ReadXid(absl::string_view line);

// "Xid 79 of GPU 0000:3b:00.0 (GPU has fallen off the bus.)".
std::string Describe(const Xid& xid);

// A clause for the failure of process `pid`. If one of `xids` names it: ", after Xid 79 of GPU
// 0000:3b:00.0 (GPU has fallen off the bus.)". Otherwise the first Xid, which may be its own (the
// process is not always known, and has another number outside a container) or another job's: ";
// meanwhile the NVIDIA driver reported Xid 79 of GPU ... and 2 more". Empty without Xids.
std::string XidsBefore(const std::vector<Xid>& xids, pid_t pid);

// Reads the kernel log, from its oldest record or from now on.
class KernelLog {
 public:
  enum class From { kOldest, kNow };

  // `path` is the kernel log device or a file of lines. The machine decides whether it is readable
  // (kernel.dmesg_restrict); if not, there are never any faults.
  explicit KernelLog(From from, const std::string& path = "/dev/kmsg");

  bool readable() const { return file_.valid(); }
  // The faults since the last call, oldest first. Does not block.
  std::vector<Xid> ReadNew();

 private:
  base::UniqueFd file_;
};

// One device. A value that the GPU or the driver is too old to report is nullopt.
struct GpuHealth {
  GpuDevice gpu;
  std::string name;                           // "NVIDIA H100 80GB HBM3"
  std::optional<std::uint64_t> memory_used;   // bytes, including the driver's own
  std::optional<std::uint64_t> memory_total;  // bytes
  std::optional<unsigned> temperature;        // degrees Celsius
  // Uncorrected memory errors since the driver was loaded or the GPU was reset.
  std::optional<std::uint64_t> uncorrected_errors;
  // Rows or pages of its memory will be retired at the next reset, and may fail again until then.
  bool repair_pending = false;
  // Its memory has no spare rows left.
  bool repair_failed = false;
  // Why it runs below full speed, apart from settings by the user: "slowed by its temperature".
  std::vector<std::string> slowdowns;
  std::vector<Xid> xids;  // in the kernel log, oldest first

  // Why no worker should run on it, a phrase each; empty if it is fit.
  std::vector<std::string> Faults() const;
  // Warnings that do not make it unfit, a phrase each.
  std::vector<std::string> Warnings() const;
};

struct GpuHealthReport {
  std::vector<GpuHealth> gpus;
  std::string driver;  // version; empty if unknown
  // Why NVML does not report the GPUs, or not all of them (GpuList); empty if it does, or there are
  // none.
  std::string trouble;
  bool log_readable = false;  // whether the kernel log, the source of Xids, can be read
};

// Asks NVML and reads the kernel log `kernel_log`. Without NVML the GPUs come from the driver's
// files, and only their Xids are known. As slow as ListGpus().
GpuHealthReport ReadGpuHealth(const GpuSources& sources = {},
                              const std::string& kernel_log = "/dev/kmsg");

}  // namespace muster::launcher
