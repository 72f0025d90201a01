// Secrets that follow from a token.
#pragma once

#include <array>
#include <cstddef>

#include "absl/strings/string_view.h"

namespace muster::rendezvous {

// HKDF-SHA256 (RFC 5869) of `secret`, without a salt, as its secrecy is that of a key. Different
// labels give what has nothing to do with each other. The caller overwrites the result.
std::array<unsigned char, 32> Derive(const std::array<unsigned char, 32>& secret,
                                     absl::string_view label);

}  // namespace muster::rendezvous
