// Event files that TensorBoard shows.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/telemetry/scalars.h"

namespace muster::trainer {

// One file of scalar events, written by one thread of one rank.
//
// The format is a sequence of TFRecords (tensorflow/core/lib/io/record_writer.h: length, masked
// CRC-32C of the length, data, masked CRC-32C of the data; little endian), each an Event message
// (tensorflow/core/util/event.proto). The five fields that are needed are encoded by hand, so that
// the trainer carries no protobuf beside LibTorch's.
class TensorBoardWriter {
 public:
  // Makes `dir` if need be, and in it a new file named for `unix_seconds`, this host and this
  // process. When `resumed_step` is above 0 the file begins with the mark at which TensorBoard
  // forgets what earlier files in `dir` say of later steps. kInvalidArgument when that cannot be
  // done.
  static absl::StatusOr<std::unique_ptr<TensorBoardWriter>> Create(const std::string& dir,
                                                                   double unix_seconds,
                                                                   std::int64_t resumed_step);
  ~TensorBoardWriter();
  TensorBoardWriter(const TensorBoardWriter&) = delete;
  TensorBoardWriter& operator=(const TensorBoardWriter&) = delete;

  // Adds one event with all values, and hands it to the kernel. kUnavailable when that fails.
  absl::Status Write(const Scalars& scalars);

  const std::string& path() const { return path_; }

 private:
  TensorBoardWriter(std::string path, std::FILE* file);
  absl::Status WriteRecord(std::string_view event);

  const std::string path_;
  std::FILE* const file_;
};

}  // namespace muster::trainer
