// What tells whether a file is still what was written.
#pragma once

#include <cstdint>
#include <string_view>

namespace muster::trainer {

struct FileFacts {
  std::uint64_t bytes = 0;
  std::uint32_t crc32 = 0;  // of all of them; the checksum of zip and gzip

  // Adds what follows in the file.
  void Add(std::string_view more);

  bool operator==(const FileFacts&) const = default;
};

}  // namespace muster::trainer
