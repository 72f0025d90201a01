#include "rendezvous/journal/journal.h"

#include <zlib.h>

namespace muster::rendezvous {

std::uint32_t Checksum(std::initializer_list<std::string_view> columns) {
  uLong crc = crc32(0, nullptr, 0);
  for (const std::string_view column : columns) {
    const std::uint64_t size = column.size();
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(&size), sizeof size);
    // A null pointer would reset crc32_z.
    if (size != 0) {
      crc = crc32_z(crc, reinterpret_cast<const Bytef*>(column.data()), column.size());
    }
  }
  return static_cast<std::uint32_t>(crc);
}

}  // namespace muster::rendezvous
