// Opens files of tokens, and text files as tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/data/tokens/token_range.h"
#include "trainer/text/tokenizer.h"

namespace muster::trainer {

// Maps files of tokens, raw and little-endian, as nanoGPT writes them. kInvalidArgument and one
// sentence when a file cannot be read, is not a whole number of tokens, looks like another type, or
// has a token that is not below `vocabulary` among its first 2^18.
absl::StatusOr<std::vector<TokenRange>> MapTokens(const std::vector<std::string>& paths,
                                                  TokenType type, std::int64_t vocabulary);

// Maps files as tokens of one byte each. kInvalidArgument when a file cannot be read.
absl::StatusOr<std::vector<TokenRange>> MapBytes(const std::vector<std::string>& paths);

// Encodes `text`, which is from `source`, into memory.
TokenRange EncodeText(std::string_view text, const std::string& source, const Tokenizer& tokenizer);

// The same for each file. kInvalidArgument when a file cannot be read.
absl::StatusOr<std::vector<TokenRange>> EncodeTexts(const std::vector<std::string>& paths,
                                                    const Tokenizer& tokenizer);

}  // namespace muster::trainer
