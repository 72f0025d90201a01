// Kubernetes' syntax of names and quantities.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace muster::launcher {

// A DNS label (RFC 1123): "gpu-node-7". A Service's name must also begin with a letter (RFC 1035).
bool IsDnsLabel(absl::string_view text);
bool IsServiceName(absl::string_view text);

// DNS labels with dots between them: names of Secrets, claims and cluster domains.
bool IsDnsName(absl::string_view text);

// "nvidia.com/gpu": an extended resource of nodes, beyond CPU and memory.
bool IsExtendedResource(absl::string_view text);

// "4", "0.5", "500m", "16Gi".
bool IsQuantity(absl::string_view text);

// The name of a container's environment variable.
bool IsVariableName(absl::string_view text);

// Escapes `text` so that Kubernetes does not expand $(NAME) in it.
std::string WithoutExpansion(absl::string_view text);

}  // namespace muster::launcher
