// The checksum of TFRecord files.
#pragma once

#include <cstdint>
#include <string_view>

namespace muster::trainer {

// CRC-32C (Castagnoli, RFC 3720 appendix B.4) of `bytes`.
std::uint32_t Crc32c(std::string_view bytes);

// The same, turned and shifted as TFRecord wants it (tensorflow/core/lib/hash/crc32c.h, Mask): a
// checksum of bytes that hold checksums would be weak otherwise.
std::uint32_t MaskedCrc32c(std::string_view bytes);

}  // namespace muster::trainer
