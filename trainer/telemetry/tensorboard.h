// Event files for TensorBoard.
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

// A file of scalar events, written by one thread of one rank.
//
// The file is a sequence of TFRecords (tensorflow/core/lib/io/record_writer.h: length, masked
// CRC-32C of the length, data, masked CRC-32C of the data; little endian), each an Event message
// (tensorflow/core/util/event.proto). The few fields we need are encoded by hand, so that the
// trainer does not link a second protobuf next to LibTorch's.
class TensorBoardWriter {
 public:
  // Creates `dir` if needed, and in it a new file named after `unix_seconds`, this host and this
  // process. When `resumed_step` is above 0, the file begins with a marker that makes TensorBoard
  // discard the later steps in earlier files of `dir`. kInvalidArgument when the directory or the
  // file cannot be created, kUnavailable when writing fails.
  static absl::StatusOr<std::unique_ptr<TensorBoardWriter>> Create(const std::string& dir,
                                                                   double unix_seconds,
                                                                   std::int64_t resumed_step);
  ~TensorBoardWriter();
  TensorBoardWriter(const TensorBoardWriter&) = delete;
  TensorBoardWriter& operator=(const TensorBoardWriter&) = delete;

  // Appends one event with all values and hands it to the kernel. kUnavailable when that fails.
  absl::Status Write(const Scalars& scalars);

  const std::string& path() const { return path_; }

 private:
  TensorBoardWriter(std::string path, std::FILE* file);
  absl::Status WriteRecord(std::string_view event);

  const std::string path_;
  std::FILE* const file_;
};

}  // namespace muster::trainer
