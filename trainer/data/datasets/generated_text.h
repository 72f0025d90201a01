// Generated text, for tests and for machines without a data set.
#pragma once

#include <cstdint>
#include <string>

namespace muster::trainer {

// Generates exactly `bytes` bytes of sentences of made-up words. Only a few words can follow each
// word: a model learns spelling within a few hundred steps, and word order later. The same `bytes`
// and `seed` give the same text on every machine.
std::string GenerateText(std::int64_t bytes, std::uint64_t seed);

}  // namespace muster::trainer
