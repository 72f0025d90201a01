// The random order of an epoch's samples.
#pragma once

#include <cstdint>
#include <vector>

namespace muster::trainer {

// torch.randperm(size, generator=g) for a CPU generator g seeded with `seed`, of which MT19937
// takes the low 32 bits (ATen/native/TensorFactories.cpp, randperm_cpu). The result is the same as
// in every LibTorch from 1.13 to 2.x, but needs no LibTorch.
std::vector<std::int64_t> RandomPermutation(std::int64_t size, std::uint64_t seed);

}  // namespace muster::trainer
