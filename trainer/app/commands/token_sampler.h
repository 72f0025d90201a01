// Which token comes next, given how likely each is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

namespace muster::trainer {

struct SamplingOptions {
  // 0: always the likeliest token. 1: as likely as the model says. Above: bolder.
  double temperature = 0.8;
  // Only the so many likeliest tokens are drawn from; 0: all.
  std::int64_t top_k = 0;
  std::uint64_t seed = 0;
};

// Draws tokens, each time the same ones for the same options and scores, whatever the machine and
// its standard library. One thread.
class TokenSampler {
 public:
  // `temperature` and `top_k` are not negative.
  explicit TokenSampler(const SamplingOptions& options);

  // The next token: an index into `scores` (logits, at least one). Of equal scores the first counts
  // as the highest. Nullopt when the scores are no numbers, as those of a model that diverged.
  std::optional<std::size_t> Next(const std::vector<double>& scores);

 private:
  const SamplingOptions options_;
  std::mt19937_64 random_;
};

}  // namespace muster::trainer
