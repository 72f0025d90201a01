// The header of a safetensors file: its tensors and their locations.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/io/formats/files.h"
#include "trainer/io/formats/value_tree.h"

namespace muster::trainer {

struct SafetensorsEntry {
  std::string name;
  Dtype dtype = Dtype::kFloat32;
  std::vector<std::int64_t> sizes;
  std::uint64_t offset = 0;  // of the elements, from the end of the header
  std::uint64_t size = 0;    // in bytes
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;        // in the order of their data in the file
  std::map<std::string, std::string> metadata;  // without the checksum
  std::uint64_t data_offset = 0;                // of all elements, from the beginning of the file

  // A checksum of the whole file, where it has one: the CRC-32 of all bytes, with zeros in place of
  // its own eight digits. `crc32_before` is that of the bytes before the elements. Other readers
  // take it for a word of its writer.
  std::optional<std::uint32_t> checksum = std::nullopt;
  std::uint32_t crc32_before = 0;
};

// Reads the header and checks what the format requires: sizes match the dtype, and the data of the
// tensors fills the rest of the file without gaps or overlaps. Errors are one clause: kUnavailable
// when reading fails, otherwise kInvalidArgument.
absl::StatusOr<SafetensorsHeader> ReadSafetensorsHeader(const ByteSource& source);

// Sets the size and offset of each of `header.entries`, in order, and returns the bytes that
// precede the elements; their number is a multiple of 8. They have a place for a checksum, with
// zeros. kInvalidArgument, with one clause, when a name occurs twice, is not UTF-8, or is
// "__metadata__".
absl::StatusOr<std::string> LayOutSafetensors(SafetensorsHeader& header);

// Puts the checksum of a whole file into its beginning, which LayOutSafetensors() has returned.
// `crc32` is that of the beginning, as it was returned, with all elements.
void SetSafetensorsChecksum(std::uint32_t crc32, std::string& beginning);

// How deeply the brackets of a JSON text lie within one another.

// Whether no more than `most` brackets of `text` are open at once. Each level costs a parser far
// more memory than the one byte that it takes in the text, so whoever reads a file of somebody else
// asks this first.
bool IsShallow(std::string_view text, int most);

}  // namespace muster::trainer
