#include "worker/flight/flight_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/failure.h"
#include "worker/flight/flight_log.h"

namespace muster::worker {
namespace {

// pread() and no mapping: access to the mapping of a file that was cut short is a SIGBUS.
bool ReadAll(int file, void* into, std::size_t bytes, std::size_t offset) {
  return pread(file, into, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

}  // namespace

absl::StatusOr<FlightFile> FlightFile::Create(int workers) {
  const auto failed = [] {
    return base::SystemFailure(absl::StatusCode::kUnavailable, "make memory for flight logs");
  };
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t stride = (kFlightLogBytes + page - 1) / page * page;
  base::UniqueFd file(memfd_create("muster-flight-logs", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const auto size = static_cast<off_t>(stride * static_cast<std::size_t>(workers));
  // A worker whose log was cut short by another one would die of its next operation.
  if (!file.valid() || ftruncate(file.get(), size) != 0 ||
      fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return failed();
  }
  FlightFile made(std::move(file), workers, stride);
  // Workers write only where they find this.
  const FlightHeader header = NewFlightHeader();
  for (int worker = 0; worker < workers; ++worker) {
    const auto offset = static_cast<off_t>(made.OffsetOf(worker));
    if (pwrite(made.file_.get(), &header, sizeof header, offset) != sizeof header) return failed();
  }
  return made;
}

FlightFile::FlightFile(base::UniqueFd file, int workers, std::size_t stride)
    : file_(std::move(file)),
      workers_(workers),
      stride_(stride),
      path_(absl::StrCat("/proc/", getpid(), "/fd/", file_.get())) {}

std::vector<RankFlight> FlightFile::Read(int first_rank) const {
  std::vector<RankFlight> flights;
  for (int worker = 0; worker < workers_; ++worker) {
    std::optional<std::vector<FlightRecord>> records = ReadFlightLog(file_.get(), OffsetOf(worker));
    const bool kept = records.has_value();
    flights.push_back(
        {first_rank + worker, std::move(records).value_or(std::vector<FlightRecord>()), kept});
  }
  return flights;
}

std::optional<std::vector<FlightRecord>> ReadFlightLog(int file, std::size_t offset) {
  FlightHeader header;
  if (!ReadAll(file, &header, sizeof header, offset) || !IsKnown(header)) {
    return std::nullopt;
  }
  // Most programs write none, and then nothing more needs to be read. Not all that do say so before
  // their first operation.
  if (header.last_ticket == 0) {
    return header.opened == 0 ? std::nullopt : std::make_optional<std::vector<FlightRecord>>();
  }
  std::vector<FlightSlot> slots(kFlightRecords);
  std::vector<FlightSlot> again(kFlightRecords);
  const std::size_t bytes = kFlightRecords * sizeof(FlightSlot);
  if (!ReadAll(file, slots.data(), bytes, offset + sizeof header) ||
      !ReadAll(file, again.data(), bytes, offset + sizeof header) ||
      !ReadAll(file, &header, sizeof header, offset)) {
    return std::nullopt;
  }
  // A ticket is 0 while its record is written: one that was read half old and half new does not
  // come out the same twice. A program that is started again in the place of another one may count
  // its tickets from 1: higher ones than its last are not its own.
  for (std::size_t i = 0; i < kFlightRecords; ++i) {
    const bool whole = std::memcmp(&slots[i], &again[i], sizeof slots[i]) == 0;
    if (!whole || slots[i].ticket > header.last_ticket) slots[i].ticket = 0;
  }
  return FlightsIn(slots);
}

}  // namespace muster::worker
