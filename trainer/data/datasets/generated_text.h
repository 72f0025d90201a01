// A text made from nothing, for tests and for machines without one.
#pragma once

#include <cstdint>
#include <string>

namespace muster::trainer {

// About `bytes` (exactly that many) of made-up words in sentences, where each word has a few
// that can follow it: a model learns spelling within a few hundred steps and word order later. The
// same `bytes` and `seed` give the same text everywhere.
std::string GenerateText(std::int64_t bytes, std::uint64_t seed);

}  // namespace muster::trainer
