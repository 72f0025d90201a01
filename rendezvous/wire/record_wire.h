// A job's record as the journal keeps it: bytes of proto/journal.proto.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "rendezvous/core/values/record.h"

namespace muster::rendezvous {

std::string ToBytes(const JobRecord& record);

// DataLoss if the bytes are not a valid record. The output of ToBytes is read back unchanged,
// except for fractions of milliseconds.
absl::StatusOr<JobRecord> RecordFromBytes(std::string_view bytes);

}  // namespace muster::rendezvous
