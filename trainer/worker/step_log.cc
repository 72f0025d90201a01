#include "trainer/worker/step_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "base/failure.h"
#include "base/json.h"
#include "base/safe_text.h"

namespace muster::trainer {
namespace {

constexpr int kBarWidth = 24;

std::string Bar(std::int64_t done, std::int64_t all) {
  const auto filled = static_cast<std::size_t>(done * kBarWidth / all);
  return std::string(filled, '#') + std::string(kBarWidth - filled, '.');
}

}  // namespace

std::string FormatSeconds(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::max(0.0, seconds) + 0.5);
  if (whole < 60) return absl::StrFormat("%d s", whole);
  if (whole < 3600) return absl::StrFormat("%d min %02d s", whole / 60, whole % 60);
  return absl::StrFormat("%d h %02d min", whole / 3600, whole / 60 % 60);
}

bool Progress::Show(const Standing& standing) {
  const std::string numbers =
      absl::StrFormat("loss %.4f, %.0f %s/s, %s left", standing.loss, standing.samples_per_second,
                      standing.unit, FormatSeconds(standing.seconds_left));
  const bool last = standing.step == standing.steps;
  if (terminal_) {
    // \x1b[K clears the rest of a longer line.
    out_ << absl::StrFormat("\repoch %d/%d [%s] %d/%d, %s\x1b[K", standing.epoch, standing.epochs,
                            Bar(standing.step, standing.steps), standing.step, standing.steps,
                            numbers);
    bar_open_ = !last;
    if (last) out_ << '\n';
    out_.flush();
    return true;
  }
  const std::int64_t tenths = standing.step * 10 / standing.steps;
  if (tenths <= shown_tenths_ && !last) return false;
  shown_tenths_ = last ? 0 : tenths;
  out_ << absl::StrFormat("epoch %d/%d: %3d %%, step %d/%d, %s\n", standing.epoch, standing.epochs,
                          standing.step * 100 / standing.steps, standing.step, standing.steps,
                          numbers);
  out_.flush();
  return true;
}

void Progress::Say(const std::string& line) {
  if (bar_open_) out_ << '\n';
  bar_open_ = false;
  out_ << Printable(line, /*lines=*/true) << '\n';
  out_.flush();
}

std::string Printable(std::string_view text, bool lines) {
  std::string shown = base::SafeText(text);
  std::replace_if(
      shown.begin(), shown.end(), [lines](char c) { return c == '\t' || (c == '\n' && !lines); },
      '?');
  return shown;
}

namespace {

constexpr std::string_view kJsonStart = "{\"step\":";

// The size of the complete lines of steps up to `last_step` in the file at `path`. Adds those of
// that step itself to `of_last`.
std::int64_t BytesUpTo(const std::string& path, std::int64_t last_step,
                       std::vector<std::string>* of_last) {
  std::ifstream file(path, std::ios::binary);
  std::int64_t bytes = 0;
  // An incomplete line was being written when the run was killed: getline() then reaches the end of
  // the file.
  for (std::string line; std::getline(file, line) && !file.eof();) {
    const std::optional<std::int64_t> step = StepOfLine(line);
    if (!step || *step > last_step) break;
    bytes += static_cast<std::int64_t>(line.size()) + 1;
    if (*step == last_step) of_last->push_back(line);
  }
  return bytes;
}

// A value's name as it appears in a line of JSON.
std::string NameInLine(const std::string& name) {
  return absl::StrCat(",", base::JsonText(name), ":");
}

}  // namespace

absl::StatusOr<std::unique_ptr<StepLog>> StepLog::Open(const std::string& path,
                                                       std::int64_t resumed_step) {
  const auto failure = [&path] {
    return base::SystemFailure(absl::StatusCode::kInvalidArgument, "write", path);
  };
  std::vector<std::string> of_last;
  const std::int64_t kept = resumed_step > 0 ? BytesUpTo(path, resumed_step, &of_last) : 0;
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return failure();
  // Pipes and terminals cannot be truncated.
  std::error_code ignored;
  const bool regular = std::filesystem::is_regular_file(path, ignored);
  std::FILE* file = regular && ftruncate(fd, kept) != 0 ? nullptr : fdopen(fd, "ab");
  if (file == nullptr) {
    const absl::Status status = failure();
    close(fd);
    return status;
  }
  return std::unique_ptr<StepLog>(new StepLog(path, file, std::move(of_last)));
}

StepLog::StepLog(std::string path, std::FILE* file, std::vector<std::string> kept)
    : path_(std::move(path)), file_(file), kept_(std::move(kept)) {}

StepLog::~StepLog() {
  std::fclose(file_);
}

bool StepLog::Kept(const Scalars& scalars) const {
  return std::any_of(kept_.begin(), kept_.end(), [&](const std::string& line) {
    return StepOfLine(line) == scalars.step &&
           std::all_of(scalars.values.begin(), scalars.values.end(), [&](const auto& value) {
             return line.find(NameInLine(value.first)) != std::string::npos;
           });
  });
}

void StepLog::Append(std::string_view line) {
  const bool written = std::fwrite(line.data(), 1, line.size(), file_) == line.size() &&
                       std::fputc('\n', file_) != EOF;
  if (!written && error_ == 0) error_ = errno;
}

absl::Status StepLog::Flush() {
  if (std::fflush(file_) != 0 && error_ == 0) error_ = errno;
  if (error_ == 0) return absl::OkStatus();
  return base::SystemFailure(absl::StatusCode::kUnavailable, "write", path_, error_);
}

std::optional<std::int64_t> StepOfLine(std::string_view line) {
  if (line.substr(0, kJsonStart.size()) == kJsonStart) line.remove_prefix(kJsonStart.size());
  const std::string_view digits = line.substr(0, line.find_first_not_of("0123456789"));
  std::int64_t step = 0;
  if (!absl::SimpleAtoi(absl::string_view(digits.data(), digits.size()), &step)) {
    return std::nullopt;
  }
  return step;
}

std::string JsonLine(const Scalars& scalars) {
  std::string json =
      absl::StrFormat("{\"step\":%d,\"time\":%.3f", scalars.step, scalars.unix_seconds);
  for (const auto& [name, value] : scalars.values) {
    json += NameInLine(name);
    json += std::isfinite(value) ? absl::StrFormat("%.9g", value) : "null";
  }
  return json + "}";
}

namespace {

// Numbers of the fields (tensorflow/core/util/event.proto,
// tensorflow/core/framework/summary.proto).
constexpr int kEventWallTime = 1;     // double
constexpr int kEventStep = 2;         // int64
constexpr int kEventFileVersion = 3;  // string
constexpr int kEventSummary = 5;      // Summary
constexpr int kEventSessionLog = 7;   // SessionLog
constexpr int kSummaryValue = 1;      // repeated Value
constexpr int kValueTag = 1;          // string
constexpr int kValueSimple = 2;       // float
constexpr int kSessionStatus = 1;     // enum; START is 1

constexpr int kVarint = 0;
constexpr int kFixed64 = 1;
constexpr int kBytes = 2;
constexpr int kFixed32 = 5;

template <typename Unsigned>
void AppendLittleEndian(Unsigned value, std::string& out) {
  for (std::size_t i = 0; i < sizeof value; ++i) {
    out += static_cast<char>(value & 0xFF);
    value >>= 8;
  }
}

void AppendVarint(std::uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7F) | 0x80);
  out += static_cast<char>(value);
}

void AppendKey(int field, int wire_type, std::string& out) {
  AppendVarint(static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(wire_type), out);
}

void AppendBytes(int field, std::string_view bytes, std::string& out) {
  AppendKey(field, kBytes, out);
  AppendVarint(bytes.size(), out);
  out += bytes;
}

void AppendNumber(int field, std::int64_t value, std::string& out) {
  AppendKey(field, kVarint, out);
  AppendVarint(static_cast<std::uint64_t>(value), out);
}

// The beginning of every Event.
std::string EventAt(double unix_seconds, std::int64_t step) {
  std::string event;
  AppendKey(kEventWallTime, kFixed64, event);
  AppendLittleEndian(std::bit_cast<std::uint64_t>(unix_seconds), event);
  AppendNumber(kEventStep, step, event);
  return event;
}

std::string HostName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

}  // namespace

absl::StatusOr<std::unique_ptr<TensorBoardWriter>> TensorBoardWriter::Create(
    const std::string& dir, double unix_seconds, std::int64_t resumed_step) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error) {
    return absl::InvalidArgumentError(
        absl::StrCat("make the TensorBoard directory ", dir, ": ", error.message()));
  }
  // TensorBoard reads all files with "tfevents" in their names.
  const std::string path =
      absl::StrFormat("%s/events.out.tfevents.%010.0f.%s.%d", dir, unix_seconds, HostName(),
                      static_cast<std::int64_t>(getpid()));
  std::FILE* file = std::fopen(path.c_str(), "wbe");
  if (file == nullptr) {
    return base::SystemFailure(absl::StatusCode::kInvalidArgument, "write", path);
  }
  std::unique_ptr<TensorBoardWriter> writer(new TensorBoardWriter(path, file));

  std::string version = EventAt(unix_seconds, 0);
  AppendBytes(kEventFileVersion, "brain.Event:2", version);
  absl::Status status = writer->WriteRecord(version);
  if (status.ok() && resumed_step > 0) {
    std::string start = EventAt(unix_seconds, resumed_step + 1);
    std::string session;
    AppendNumber(kSessionStatus, 1, session);
    AppendBytes(kEventSessionLog, session, start);
    status = writer->WriteRecord(start);
  }
  if (!status.ok()) return status;
  return writer;
}

TensorBoardWriter::TensorBoardWriter(std::string path, std::FILE* file)
    : path_(std::move(path)), file_(file) {}

TensorBoardWriter::~TensorBoardWriter() {
  std::fclose(file_);
}

absl::Status TensorBoardWriter::Write(const Scalars& scalars) {
  std::string summary;
  for (const auto& [tag, number] : scalars.values) {
    std::string value;
    AppendBytes(kValueTag, tag, value);
    AppendKey(kValueSimple, kFixed32, value);
    AppendLittleEndian(std::bit_cast<std::uint32_t>(static_cast<float>(number)), value);
    AppendBytes(kSummaryValue, value, summary);
  }
  std::string event = EventAt(scalars.unix_seconds, scalars.step);
  AppendBytes(kEventSummary, summary, event);
  return WriteRecord(event);
}

absl::Status TensorBoardWriter::WriteRecord(std::string_view event) {
  std::string record;
  AppendLittleEndian(static_cast<std::uint64_t>(event.size()), record);
  AppendLittleEndian(MaskedCrc32c(record), record);
  record += event;
  AppendLittleEndian(MaskedCrc32c(event), record);
  if (std::fwrite(record.data(), 1, record.size(), file_) == record.size() &&
      std::fflush(file_) == 0) {
    return absl::OkStatus();
  }
  return base::SystemFailure(absl::StatusCode::kUnavailable, "write", path_);
}

namespace {

constexpr std::array<std::uint32_t, 256> MakeTable() {
  constexpr std::uint32_t kPolynomial = 0x82F63B78;  // 0x1EDC6F41 with its bits reversed
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}

constexpr std::array<std::uint32_t, 256> kTable = MakeTable();

}  // namespace

// One byte at a time: it only processes a few hundred bytes per report.
std::uint32_t Crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const char c : bytes) {
    crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xFF];
  }
  return ~crc;
}

std::uint32_t MaskedCrc32c(std::string_view bytes) {
  const std::uint32_t crc = Crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8;
}

}  // namespace muster::trainer
