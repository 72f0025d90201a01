#include "trainer/app/commands/token_sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace muster::trainer {

TokenSampler::TokenSampler(const SamplingOptions& options)
    : options_(options), random_(options.seed) {}

std::optional<std::size_t> TokenSampler::Next(const std::vector<double>& scores) {
  for (const double score : scores) {
    if (std::isnan(score)) return std::nullopt;
  }
  const auto highest = std::max_element(scores.begin(), scores.end());
  if (!std::isfinite(*highest)) return std::nullopt;
  if (options_.temperature == 0) return static_cast<std::size_t>(highest - scores.begin());

  std::vector<std::size_t> tokens(scores.size());
  std::iota(tokens.begin(), tokens.end(), std::size_t{0});
  const auto wanted = static_cast<std::size_t>(options_.top_k);
  if (wanted > 0 && wanted < tokens.size()) {
    std::stable_sort(tokens.begin(), tokens.end(),
                     [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
    tokens.resize(wanted);
  }
  // Running sums of what is proportional to the tokens' probabilities.
  std::vector<double> sums;
  double sum = 0;
  for (const std::size_t token : tokens) {
    sum += std::exp((scores[token] - *highest) / options_.temperature);
    sums.push_back(sum);
  }
  // By hand: what the distributions of the standard library draw differs between libraries.
  const double share = static_cast<double>(random_() >> 11U) * 0x1p-53;  // [0, 1)
  const auto found = std::upper_bound(sums.begin(), sums.end(), share * sum);
  // Rounding may make the product the sum itself.
  return found == sums.end() ? tokens.back()
                             : tokens[static_cast<std::size_t>(found - sums.begin())];
}

}  // namespace muster::trainer
