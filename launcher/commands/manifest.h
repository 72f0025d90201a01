// `muster manifest`: a job for Kubernetes.
#pragma once

#include <string>
#include <vector>

namespace muster::launcher {

// `args` are those after `manifest`. Prints the manifest, or the help text. Returns 2, with a
// sentence on stderr, when the arguments make no sense or the token file cannot be read, and 4 when
// stdout cannot be written.
int ManifestCommand(const std::vector<std::string>& args);

}  // namespace muster::launcher
