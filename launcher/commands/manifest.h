// `muster manifest`: prints a job for Kubernetes.
#pragma once

#include "base/cli/command.h"

namespace muster::launcher {

base::Command ManifestCommand();

}  // namespace muster::launcher
