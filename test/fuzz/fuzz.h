// The function that libFuzzer calls for each input. Aborts when something is wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace muster {

inline void Check(bool holds) {
  if (!holds) std::abort();
}

}  // namespace muster
