// A job's record as the journal keeps it: bytes of proto/journal.proto.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "rendezvous/core/record.h"

namespace muster::rendezvous {

std::string ToBytes(const JobRecord& record);

// DataLoss when the bytes are no such record. What was written by ToBytes is read back as it was,
// but for fractions of milliseconds.
absl::StatusOr<JobRecord> RecordFromBytes(std::string_view bytes);

}  // namespace muster::rendezvous
