// Which GPUs the workers get: what CUDA_VISIBLE_DEVICES leaves of the machine's, by CUDA's rules.
// A device is named as that variable names it, an "entry":
//   4                      its index
//   GPU-8932f937-d72c-...  its UUID, or a prefix of it that no other device shares
//   MIG-...                one instance of a partitioned device
// `gpus` are the machine's (nvml.h); where none are known, entries can be read but not looked up.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launcher/environment.h"
#include "launcher/machine/nvml.h"

namespace muster::launcher {

// The entries that CUDA gives a process with this environment, stripped of blanks and in their
// order; all devices by index when CUDA_VISIBLE_DEVICES is unset. As CUDA reads the variable:
// - An entry that names no device hides itself and all that follow; customarily that is -1.
// - The first entry decides between indices, GPU- and MIG-; the first of another kind ends the
// list.
// - A device named twice makes CUDA see none at all, so the answer is empty.
// - If the variable is set but empty, there are none.
// Every MIG entry counts, although a process is given only the first: each worker may have its own.
// Where no device is known, every well-formed entry counts.
std::vector<std::string> VisibleDevices(const Environment& environment,
                                        const std::vector<GpuDevice>& gpus);

// The device an entry names, or the one a MIG instance is part of; null when it is not known.
const GpuDevice* FindDevice(absl::string_view entry, const std::vector<GpuDevice>& gpus);

// One name for a device, however it is spelled: its whole UUID if known, else the entry.
std::string CanonicalDevice(absl::string_view entry, const std::vector<GpuDevice>& gpus);

// Reads --devices: entries and ranges of indices ("0-3,6"). Returns the value for
// CUDA_VISIBLE_DEVICES as a list of entries. An error's message is a phrase that follows the text
// it is about: a device does not exist, is named twice, or is hidden by a CUDA_VISIBLE_DEVICES that
// is already set. Where no device is known (a machine without GPUs), existence is not checked;
// DevicesNote() says so.
absl::StatusOr<std::vector<std::string>> CheckDevices(absl::string_view text,
                                                      const std::vector<GpuDevice>& gpus,
                                                      const Environment& environment);

// One line for the user when --devices=`text` could not be checked, else empty.
std::string DevicesNote(absl::string_view text, const std::vector<GpuDevice>& gpus);

// What --virtual-local-rank puts into a worker's CUDA_VISIBLE_DEVICES: entry number `local_rank` of
// the launcher's own, stripped of blanks, or `local_rank` itself when that is unset. An error, one
// sentence, when the list is too short. Like torchrun, it does not look at the devices.
absl::StatusOr<std::string> DeviceOfRank(int local_rank, const Environment& environment);

}  // namespace muster::launcher
