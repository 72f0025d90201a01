// Opens the text or the tokens that the user asks for.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

#include "trainer/data/samples/data_options.h"
#include "trainer/data/samples/token_windows.h"

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

// Generated text, for tests and for machines without a data set.

// Generates exactly `bytes` bytes of sentences of invented words. Only a few words can follow each
// word: a model learns spelling within a few hundred steps, and word order later. The same `bytes`
// and `seed` give the same text on every machine.
std::string GenerateText(std::int64_t bytes, std::uint64_t seed);

}  // namespace muster::trainer
