// The memory layout of a flight log: version 1, as described in docs/observing/flight_log.py.
// Workers of any kind write it and launchers read it, so nothing here may change; another layout
// needs another version. Numbers have the machine's own byte order. This header depends on nothing.
#pragma once

#include <cstddef>
#include <cstdint>

namespace muster::worker {

inline constexpr char kFlightMagic[8] = {'M', 'U', 'S', 'T', 'E', 'R', 'F', 'L'};
inline constexpr std::uint32_t kFlightVersion = 1;
// A log holds the records of the last operations.
inline constexpr std::size_t kFlightRecords = 63;

// The start of a log.
struct FlightHeader {
  char magic[8];               // kFlightMagic
  std::uint32_t version;       // kFlightVersion
  std::uint32_t records;       // kFlightRecords
  std::uint32_t record_bytes;  // sizeof(FlightSlot)
  std::uint32_t opened;        // 1 once a worker keeps the log
  std::uint32_t unused[10];
  std::uint64_t last_ticket;  // of the operation that began last; 0: none
  std::uint64_t unused_too[23];
};
static_assert(sizeof(FlightHeader) == 256 && offsetof(FlightHeader, opened) == 20 &&
              offsetof(FlightHeader, last_ticket) == 64);

// One operation. Ticket n uses slot n mod kFlightRecords. Texts end at their first zero byte or at
// the end of the field. Times are CLOCK_MONOTONIC's.
struct FlightSlot {
  std::uint64_t ticket;  // 0: empty, or being written
  std::int64_t entered_ns;
  std::int64_t left_ns;  // 0: not finished
  std::uint64_t bytes;
  std::uint32_t number;  // of the operation within its part of its group, from 1
  std::uint8_t part;     // FlightPart
  std::uint8_t unused[3];
  char operation[24];  // "all-reduce"
  char group[32];      // empty for the group of all ranks
  char tensor[96];     // name, or the other rank of a message
  std::uint8_t unused_too[64];
};
static_assert(sizeof(FlightSlot) == 256 && offsetof(FlightSlot, operation) == 40 &&
              offsetof(FlightSlot, group) == 64 && offsetof(FlightSlot, tensor) == 96);

inline constexpr std::size_t kFlightLogBytes =
    sizeof(FlightHeader) + kFlightRecords * sizeof(FlightSlot);
static_assert(kFlightLogBytes == 16384);

}  // namespace muster::worker
