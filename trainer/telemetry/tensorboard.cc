#include "trainer/telemetry/tensorboard.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "base/failure.h"
#include "trainer/telemetry/crc32c.h"

namespace muster::trainer {
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
  // TensorBoard reads every file with "tfevents" in its name.
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

}  // namespace muster::trainer
