// The function that libFuzzer calls with one input after another. Aborts when something is wrong.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
