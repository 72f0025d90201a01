// What NVIDIA's driver writes into the kernel's log: an Xid for each fault of a GPU.
// https://docs.nvidia.com/deploy/xid-errors/
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "base/unique_fd.h"

namespace muster::launcher {

struct Xid {
  std::string pci_bus_id;  // as /sys/bus/pci/devices spells it: "0000:3b:00.0"
  int number = 0;          // 79
  pid_t pid = 0;     // of the process that used the GPU, in the first PID namespace; 0: unknown
  std::string text;  // "GPU has fallen off the bus."; may be empty

  bool operator==(const Xid&) const = default;
};

// Reads "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus." with
// whatever is before it. nullopt: the line is about something else.
std::optional<Xid> ReadXid(absl::string_view line);

// "Xid 79 of GPU 0000:3b:00.0 (GPU has fallen off the bus.)".
std::string Describe(const Xid& xid);

// What is told of the failure of process `pid`, if that has had a fault: ", after Xid 79 of GPU
// 0000:3b:00.0 (GPU has fallen off the bus.)". Else of the first fault, which may be its own, as
// the process is not always known and has another number outside of a container, or another job's:
// "; meanwhile the NVIDIA driver reported Xid 79 of GPU ... and 2 more". Empty without faults.
std::string XidsBefore(const std::vector<Xid>& xids, pid_t pid);

// The kernel's log, from one of its ends on.
class KernelLog {
 public:
  enum class From { kOldest, kNow };

  // `path` is that of a device of the kernel's log, or a file of lines. Whether it may be read is
  // up to the machine (kernel.dmesg_restrict): where not, there are never any faults.
  explicit KernelLog(From from, const std::string& path = "/dev/kmsg");

  bool readable() const { return file_.valid(); }
  // The faults since the last call, the oldest first. Does not wait.
  std::vector<Xid> ReadNew();

 private:
  base::UniqueFd file_;
};

}  // namespace muster::launcher
