// The checksum of zip files.
#pragma once

#include <cstddef>
#include <cstdint>

namespace muster::trainer {

// The checksum of a run of bytes that begins with bytes whose checksum is `crc` (0: with none) and
// ends with the `count` bytes at `data`. What zlib's crc32() gives, several times as fast where the
// processor multiplies polynomials: checksums were most of the time of reading a checkpoint.
std::uint32_t Crc32(std::uint32_t crc, const void* data, std::size_t count);

}  // namespace muster::trainer
