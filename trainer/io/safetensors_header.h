// The beginning of a safetensors file: which tensors it has, and where.
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
  std::uint64_t offset = 0;  // of its elements, from the end of the header
  std::uint64_t size = 0;    // in bytes
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of their elements
  std::map<std::string, std::string> metadata;
  std::uint64_t data_offset = 0;  // of the elements of all, from the beginning of the file
};

// Reads the header as the format demands: sizes that match the dtype, elements that follow each
// other without gap or overlap, up to the end of the file. One clause on errors: kUnavailable when
// reading fails, else kInvalidArgument.
absl::StatusOr<SafetensorsHeader> ReadSafetensorsHeader(const ByteSource& source);

// Gives each of `header.entries` its size and offset, in their order, and returns the bytes ahead
// of the elements, a multiple of 8. kInvalidArgument, one clause, when a name occurs twice, is not
// UTF-8, or is "__metadata__".
absl::StatusOr<std::string> LayOutSafetensors(SafetensorsHeader& header);

}  // namespace muster::trainer
