// Opens the text or the tokens that the user asks for.
#pragma once

#include "absl/status/statusor.h"

#include "trainer/data/data_options.h"
#include "trainer/data/tokens/token_windows.h"

namespace muster::trainer {

// Where tokens come from.
enum class TokenSource {
  kText,       // text files, as bytes or encoded by a tokenizer
  kTokens,     // files of tokens
  kGenerated,  // 256 KiB of text, generated in memory
};

// Both splits, with the same context and vocabulary, and at least one window in each.
struct TokenSplits {
  TokenWindows train;
  TokenWindows test;
};

// Opens or generates the data. kInvalidArgument and one sentence when a file is missing, damaged,
// of another kind or too small, or when an option is out of range.
absl::StatusOr<TokenSplits> OpenTokenSplits(TokenSource source, const DataOptions& options);

}  // namespace muster::trainer
