#include "trainer/telemetry/trace_file.h"

#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/failure.h"

namespace muster::trainer {
namespace {

// Names of operators are plain text; what JSON does not take becomes a question mark.
std::string Plain(const std::string& name) {
  std::string plain = name;
  for (char& c : plain) {
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20) c = '?';
  }
  return plain;
}

absl::Status WriteFailure(const std::string& path) {
  return base::SystemFailure(absl::StatusCode::kUnavailable, "write", path);
}

}  // namespace

void TraceBuffer::Add(TraceEvent event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (events_.size() == capacity_) {
    ++dropped_;
  } else {
    events_.push_back(std::move(event));
  }
}

std::size_t TraceBuffer::size() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return events_.size();
}

std::size_t TraceBuffer::dropped() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return dropped_;
}

absl::Status TraceBuffer::Write(const std::string& path, int rank) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << absl::StrFormat(
      "[{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\",\"args\":{\"name\":\"rank %d\"}}", rank,
      rank);
  // Chrome's unit is the microsecond.
  for (const TraceEvent& event : events_) {
    file << absl::StrFormat(
        ",\n{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"name\":\"%s\",\"ts\":%d.%03d,\"dur\":%d.%03d}",
        rank, event.thread, Plain(event.name), event.start_ns / 1000, event.start_ns % 1000,
        event.duration_ns / 1000, event.duration_ns % 1000);
  }
  file << "\n";
  file.close();
  return file.good() ? absl::OkStatus() : WriteFailure(path);
}

std::string TracePart(const std::string& path, int rank) {
  return absl::StrCat(path, ".rank", rank);
}

absl::StatusOr<int> MergeTraceParts(const std::string& path, int world_size) {
  std::ofstream merged(path, std::ios::binary | std::ios::trunc);
  int found = 0;
  for (int rank = 0; rank < world_size; ++rank) {
    const std::string part_path = TracePart(path, rank);
    std::ifstream part(part_path, std::ios::binary);
    if (!part) continue;
    // Each part begins an array; the merged file has one.
    part.get();
    merged << (found == 0 ? "[" : ",\n") << part.rdbuf();
    ++found;
  }
  merged << "]\n";
  merged.close();
  if (!merged.good()) return WriteFailure(path);
  std::error_code ignored;
  for (int rank = 0; rank < world_size; ++rank) {
    std::filesystem::remove(TracePart(path, rank), ignored);
  }
  return found;
}

}  // namespace muster::trainer
