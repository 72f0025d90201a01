// A job's record as the journal keeps it: bytes of proto/journal.proto.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "rendezvous/core/record.h"

namespace muster::rendezvous {

std::string ToBytes(const JobRecord& record);

// DataLoss when the bytes are not such a record. What ToBytes wrote is read back unchanged, except
// for fractions of milliseconds.
absl::StatusOr<JobRecord> RecordFromBytes(std::string_view bytes);

}  // namespace muster::rendezvous
