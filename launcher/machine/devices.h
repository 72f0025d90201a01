// Which GPUs the workers get: those of the machine that CUDA_VISIBLE_DEVICES leaves, by CUDA's
// rules. An "entry" names a device as that variable does:
//   4                      its index
//   GPU-8932f937-d72c-...  its UUID, or a unique prefix of it
//   MIG-...                one instance of a partitioned device
// `gpus` are the machine's (nvml.h). If they are unknown, entries are parsed but not looked up.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "launcher/machine/environment.h"
#include "launcher/machine/nvml.h"

namespace muster::launcher {

// The entries that CUDA gives a process with this environment, in order and without blanks; all
// devices by index if CUDA_VISIBLE_DEVICES is unset. CUDA's rules for the variable:
// - An entry that names no device, usually -1, hides itself and all entries after it.
// - The first entry decides between indices, GPU- and MIG-; an entry of another kind ends the list.
// - A device named twice hides all devices.
// - If the variable is set but empty, there are no devices.
// Every MIG entry counts, although CUDA gives a process only the first: each worker may have its
// own. If the machine's devices are unknown, every well-formed entry counts.
std::vector<std::string> VisibleDevices(const Environment& environment,
                                        const std::vector<GpuDevice>& gpus);

// The device that an entry names, or that contains a MIG instance; null if unknown.
const GpuDevice* FindDevice(absl::string_view entry, const std::vector<GpuDevice>& gpus);

// One name for all spellings of a device: its full UUID if known, else the entry.
std::string CanonicalDevice(absl::string_view entry, const std::vector<GpuDevice>& gpus);

// Parses --devices: entries and ranges of indices ("0-3,6"). Returns the entries for
// CUDA_VISIBLE_DEVICES. An error's message is a phrase that follows the parsed text: a device does
// not exist, is named twice, or is hidden by the current CUDA_VISIBLE_DEVICES. Without known
// devices (a machine without GPUs), existence is not checked; DevicesNote() says so.
absl::StatusOr<std::vector<std::string>> CheckDevices(absl::string_view text,
                                                      const std::vector<GpuDevice>& gpus,
                                                      const Environment& environment);

// One line for the user if --devices=`text` could not be checked, else empty.
std::string DevicesNote(absl::string_view text, const std::vector<GpuDevice>& gpus);

// What --virtual-local-rank puts into a worker's CUDA_VISIBLE_DEVICES: entry number `local_rank` of
// the launcher's own list, without blanks, or `local_rank` itself if that is unset. An error, one
// sentence, if the list is too short. Like torchrun, it does not check the devices.
absl::StatusOr<std::string> DeviceOfRank(int local_rank, const Environment& environment);

// Accelerators that Muster does not count: those of vendors other than NVIDIA, and NVIDIA's without
// device nodes of their own. They are detected so that their machine is not taken for a CPU-only
// one.

struct Accelerator {
  std::string kind;  // "AMD GPUs"
  std::string node;  // "/dev/kfd"
  // How many workers can use, as far as known: by the variable that selects among them, else by
  // their device nodes; 0 if unknown.
  int count = 0;
  // "HIP_VISIBLE_DEVICES=0,1,2"; empty if the variable is not set.
  std::string chosen_by;

  bool operator==(const Accelerator&) const = default;
};

// Where to look. Tests supply a machine of their own.
struct AcceleratorSources {
  std::string device_dir = "/dev";
  std::string sysfs = "/sys";
};

// The first kind found on this machine. nullopt if there is none, or if the user has hidden all
// devices (variable set to nothing, or to -1). Reads a few directories.
std::optional<Accelerator> FindAccelerator(const Environment& environment,
                                           const AcceleratorSources& sources = {});

// Whether this is WSL2, with one node (/dev/dxg) for all GPUs of Windows, of any vendor.
bool HasWslGpu(const std::string& device_dir);

}  // namespace muster::launcher
