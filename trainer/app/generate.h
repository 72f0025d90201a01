// muster-train generate: generates text with a GPT.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/models/registry.h"

namespace muster::trainer {

// Continues a prompt with the GPT of a checkpoint, and writes both to `out`, character by
// character; reports the speed to standard error. `argv` begins with "generate". Returns the exit
// code. kInvalidArgument for a mistake in the flags, and when the checkpoint is missing, damaged,
// or of another model; kUnavailable when the text cannot be written. Throws what LibTorch throws.
absl::StatusOr<int> RunGenerate(int argc, const char* const* argv, const Registry& registry,
                                std::ostream& out);

// Draws the next token from the model's scores.

struct SamplingOptions {
  // 0: always the likeliest token. 1: the model's own probabilities. Higher: more random.
  double temperature = 0.8;
  // Draw only from this many of the likeliest tokens; 0: all.
  std::int64_t top_k = 0;
  std::uint64_t seed = 0;
};

// Draws tokens reproducibly: the same for the same options and scores, on every machine and with
// every standard library. One thread.
class TokenSampler {
 public:
  // `temperature` and `top_k` are not negative.
  explicit TokenSampler(const SamplingOptions& options);

  // The next token: an index into `scores` (logits, at least one). Ties go to the first. nullopt if
  // the scores are NaN, as with a model that diverged.
  std::optional<std::size_t> Next(const std::vector<double>& scores);

 private:
  const SamplingOptions options_;
  std::mt19937_64 random_;
};

// Assembles bytes into UTF-8 characters.

// Holds bytes back until they can be shown: a terminal shows a replacement mark for half a
// character. All bytes come out in order, including invalid UTF-8. One thread.
class Utf8Assembler {
 public:
  // Takes the next byte. Returns the bytes that need not wait any longer: complete characters, and
  // bytes that cannot start or complete one; may be empty.
  std::string Add(char byte);

  // The bytes held back, at the end of the text.
  std::string Finish();

 private:
  std::string held_;        // the first bytes of a character
  std::size_t length_ = 0;  // of that character
};

}  // namespace muster::trainer
