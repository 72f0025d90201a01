// Converts the core's values to and from their wire format (proto/rendezvous.proto). Used by both
// ends, so that one file has the fields' names, their units on the wire and their limits.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "proto/rendezvous.pb.h"
#include "rendezvous/core/values/messages.h"
#include "rendezvous/core/values/record.h"
#include "rendezvous/core/values/snapshot.h"
#include "rendezvous/core/values/types.h"

namespace muster::rendezvous {

void ToWire(const Event& event, v1::AgentEvent* wire);
void ToWire(const Directive& directive, v1::Directive* wire);
void ToWire(const JobSnapshot& snapshot, v1::JobDescription* wire);
void ToWire(const JobEnd& end, v1::JobEnd* wire);

// Strings for people are cut to their limits in both directions, and anything that is not text
// becomes '?' (phrases.h), so that no node can control another's terminal. Everything else passes
// unchanged: the Coordinator checks numbers and names. An unknown event (from a newer agent)
// becomes a KeepAlive: all we learn is that the agent is alive.
Event FromWire(const v1::AgentEvent& wire);
// An unknown directive (from a newer daemon) becomes a Waiting with an empty sentence, which has no
// effect.
Directive FromWire(const v1::Directive& wire);
// An unknown state becomes the first of its kind: gathering, or joined.
JobSnapshot FromWire(const v1::JobDescription& wire);
JobEnd FromWire(const v1::JobEnd& wire);

// A job's record as the journal keeps it: bytes of proto/journal.proto.

std::string ToBytes(const JobRecord& record);

// DataLoss if the bytes are not a valid record. The output of ToBytes is read back unchanged,
// except for fractions of milliseconds.
absl::StatusOr<JobRecord> RecordFromBytes(std::string_view bytes);

}  // namespace muster::rendezvous
