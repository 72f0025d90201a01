// The checksum of TFRecord files.
#pragma once

#include <cstdint>
#include <string_view>

namespace muster::trainer {

// CRC-32C (Castagnoli, RFC 3720 appendix B.4) of `bytes`.
std::uint32_t Crc32c(std::string_view bytes);

// The same, rotated and offset as TFRecord requires (tensorflow/core/lib/hash/crc32c.h, Mask),
// because the plain CRC of data that contains CRCs is weak.
std::uint32_t MaskedCrc32c(std::string_view bytes);

}  // namespace muster::trainer
