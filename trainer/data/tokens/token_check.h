// Checks that a file of tokens is what the user says it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trainer/data/tokens/token_range.h"

namespace muster::trainer {

// Returns a sentence about the first token of `range` that is not below `vocabulary`, with its file
// and position; nullopt if there is none.
std::optional<std::string> ForeignToken(const TokenRange& range, std::int64_t vocabulary);

// Returns whether `range`, which is read as uint16, looks like uint32: every other token is 0.
// Needs at least 16 tokens to tell.
bool LooksLikeUint32(const TokenRange& range);

}  // namespace muster::trainer
