// What Slurm says of this machine.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace muster::launcher {

// Why the node is to have no more jobs, from what `scontrol show node NAME` prints; to follow the
// node's name: "Slurm drains it (bad fan)", or "Slurm expects it to fail". Nullopt: jobs may run
// there, or this is none of scontrol's texts.
std::optional<std::string> WhySlurmDrains(absl::string_view shown);

}  // namespace muster::launcher
