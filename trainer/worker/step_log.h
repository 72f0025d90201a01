// What is told of each step: the progress shown to the user, and a text file with a line per step
// or report, which a resumed run continues.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::trainer {

// Shows the progress of the training.

// The state of the training after a step.
struct Standing {
  int epoch = 1;  // counted from 1
  int epochs = 1;
  std::int64_t step = 0;  // of this epoch
  std::int64_t steps = 1;
  double loss = 0;                // mean over the steps since Show() last returned true
  double samples_per_second = 0;  // in this epoch so far, all ranks together
  const char* unit = "images";    // the name of samples
  double seconds_left = 0;        // until the end of the training, excluding evaluation
};

// "12 s", "3 min 05 s", "2 h 05 min".
std::string FormatSeconds(double seconds);

// On a terminal, draws a progress bar. Otherwise prints a line for each tenth of an epoch, so that
// log files stay readable. For one rank only.
class Progress {
 public:
  // `out` must outlive this object.
  Progress(std::ostream& out, bool terminal) : out_(out), terminal_(terminal) {}

  // Shows `standing`, unless it is too early for the next line. Returns whether it did. The last
  // step of an epoch is always shown.
  bool Show(const Standing& standing);

  // Prints `line` separately, below an unfinished bar. Control characters in it, except line feeds,
  // are shown as '?'.
  void Say(const std::string& line);

 private:
  std::ostream& out_;
  const bool terminal_;
  bool bar_open_ = false;          // the cursor is on the bar's line
  std::int64_t shown_tenths_ = 0;  // of the current epoch
};

// Makes text safe to show on a terminal.

// `text` with '?' for each invisible character (base/safe_text.h), including tabs and line feeds,
// such as file names may contain: they could break lines, command the terminal or deceive the
// reader. Keeps line feeds if `lines`.
std::string Printable(std::string_view text, bool lines = false);

// A text file with a line per step or report, which a resumed run continues.

// Named numbers at one step of the training, to be logged or plotted.

struct Scalars {
  std::int64_t step = 0;    // steps done, over all epochs
  double unix_seconds = 0;  // time of the step
  // Names and values in display order, such as {"train/loss", 0.51}.
  std::vector<std::pair<std::string, double>> values;
};

// Written by one thread of one rank. Each line begins with its step, such as "12 0.51" or
// {"step":12,...}, in ascending order. A killed run may have logged steps after its last
// checkpoint. The resumed run repeats those steps, so Open() first removes their lines, and the
// file ends up as if the run had never been interrupted.
class StepLog {
 public:
  // Opens the file at `path` for appending. Keeps the complete lines up to step `resumed_step` and
  // truncates the rest; 0 empties the file. Pipes and terminals are not truncated. kInvalidArgument
  // if the file cannot be opened or truncated.
  static absl::StatusOr<std::unique_ptr<StepLog>> Open(const std::string& path,
                                                       std::int64_t resumed_step);
  ~StepLog();
  StepLog(const StepLog&) = delete;
  StepLog& operator=(const StepLog&) = delete;

  // Whether a line kept by Open(), for the resumed step, already reports everything in `scalars`. A
  // run with nothing left to do would repeat it.
  bool Kept(const Scalars& scalars) const;

  // Appends `line`, which must not contain a line break. Errors are reported by Flush().
  void Append(std::string_view line);

  // Passes the appended lines to the kernel. kUnavailable, in this and every later call, if that or
  // an earlier Append() failed.
  absl::Status Flush();

 private:
  StepLog(std::string path, std::FILE* file, std::vector<std::string> kept);

  const std::string path_;
  std::FILE* const file_;
  const std::vector<std::string> kept_;  // lines of the step that was resumed
  int error_ = 0;                        // errno of the first write that failed
};

// The step at the beginning of `line`; nullopt if there is none.
std::optional<std::int64_t> StepOfLine(std::string_view line);

// A JSON object on one line: "step", "time" (Unix seconds), then the values. Numbers that are not
// finite, which JSON cannot express, become null.
std::string JsonLine(const Scalars& scalars);

// Event files for TensorBoard.

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

  // Appends one event with all values and passes it to the kernel. kUnavailable if that fails.
  absl::Status Write(const Scalars& scalars);

  const std::string& path() const { return path_; }

 private:
  TensorBoardWriter(std::string path, std::FILE* file);
  absl::Status WriteRecord(std::string_view event);

  const std::string path_;
  std::FILE* const file_;
};

// The checksum of TFRecord files.

// CRC-32C (Castagnoli, RFC 3720 appendix B.4) of `bytes`.
std::uint32_t Crc32c(std::string_view bytes);

// The same, rotated and offset as TFRecord requires (tensorflow/core/lib/hash/crc32c.h, Mask),
// because the plain CRC of data that contains CRCs is weak.
std::uint32_t MaskedCrc32c(std::string_view bytes);

}  // namespace muster::trainer
