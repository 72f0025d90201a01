// What Kubernetes takes for a name or an amount.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace muster::launcher {

// A label of DNS (RFC 1123): "gpu-node-7". Services' names begin with a letter (RFC 1035) as well.
bool IsDnsLabel(absl::string_view text);
bool IsServiceName(absl::string_view text);

// Labels with dots between them: what Secrets, claims and cluster domains are called.
bool IsDnsName(absl::string_view text);

// "nvidia.com/gpu": what nodes can have some of, beyond processors and memory.
bool IsExtendedResource(absl::string_view text);

// "4", "0.5", "500m", "16Gi".
bool IsQuantity(absl::string_view text);

// A variable's name, as containers may have it.
bool IsVariableName(absl::string_view text);

// The text so that Kubernetes, which replaces $(NAME) in arguments and variables, leaves it as it
// is.
std::string WithoutExpansion(absl::string_view text);

}  // namespace muster::launcher
