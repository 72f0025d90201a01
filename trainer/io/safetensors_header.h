// The header of a safetensors file: its tensors and their locations.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/io/byte_source.h"
#include "trainer/io/dtype.h"

namespace muster::trainer {

struct SafetensorsEntry {
  std::string name;
  Dtype dtype = Dtype::kFloat32;
  std::vector<std::int64_t> sizes;
  std::uint64_t offset = 0;  // of the elements, from the end of the header
  std::uint64_t size = 0;    // in bytes
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of their data in the file
  std::map<std::string, std::string> metadata;
  std::uint64_t data_offset = 0;  // of all elements, from the beginning of the file
};

// Reads the header and checks what the format requires: sizes match the dtype, and the data of the
// tensors fills the rest of the file without gaps or overlaps. Errors are one clause: kUnavailable
// when reading fails, otherwise kInvalidArgument.
absl::StatusOr<SafetensorsHeader> ReadSafetensorsHeader(const ByteSource& source);

// Sets the size and offset of each of `header.entries`, in order, and returns the bytes that
// precede the elements; their number is a multiple of 8. kInvalidArgument, with one clause, when a
// name occurs twice, is not UTF-8, or is "__metadata__".
absl::StatusOr<std::string> LayOutSafetensors(SafetensorsHeader& header);

}  // namespace muster::trainer
