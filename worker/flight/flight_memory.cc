#include "worker/flight/flight_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/failure.h"
#include "base/unique_fd.h"
#include "worker/flight/flight_layout.h"
#include "worker/flight/flight_log.h"

namespace muster::worker {

absl::StatusOr<FlightMemory> FlightMemory::Open(const std::string& path, std::size_t offset) {
  const auto failed = [&path](const std::string& why) {
    return base::Failure(absl::StatusCode::kUnavailable, "open the flight log", path, why);
  };
  // Nothing is waited for: the number of the descriptor may mean anything by now.
  const base::UniqueFd file(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.valid()) return failed(base::SystemCause());
  const auto start = static_cast<off_t>(offset);
  FlightHeader header;
  struct stat info {};
  if (fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) || start < 0 ||
      info.st_size < static_cast<off_t>(kFlightLogBytes) ||
      start > info.st_size - static_cast<off_t>(kFlightLogBytes) ||
      pread(file.get(), &header, sizeof header, start) != sizeof header || !IsKnown(header)) {
    return failed(absl::StrCat("there is no log of version ", kFlightVersion, " at ", offset));
  }
  // All of it now, as an access for which no memory is left is a SIGBUS.
  if (const int error = posix_fallocate(file.get(), start, kFlightLogBytes); error != 0) {
    return failed(base::SystemCause(error));
  }
  void* const mapping =
      mmap(nullptr, kFlightLogBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), start);
  if (mapping == MAP_FAILED) return failed(base::SystemCause());
  auto* const memory = static_cast<std::byte*>(mapping);
  std::memset(memory + offsetof(FlightHeader, last_ticket), 0,
              kFlightLogBytes - offsetof(FlightHeader, last_ticket));
  const std::uint32_t opened = 1;
  std::memcpy(memory + offsetof(FlightHeader, opened), &opened, sizeof opened);
  return FlightMemory(memory);
}

FlightMemory::FlightMemory(FlightMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)) {}

FlightMemory& FlightMemory::operator=(FlightMemory&& other) noexcept {
  std::swap(data_, other.data_);
  return *this;
}

FlightMemory::~FlightMemory() {
  if (data_ != nullptr) munmap(data_, kFlightLogBytes);
}

}  // namespace muster::worker
