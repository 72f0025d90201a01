// Converts the core's values to and from their form on the wire (proto/rendezvous.proto). Used by
// both ends, so that one file knows what a field is called, its unit on the wire and its limits.
#pragma once

#include "proto/rendezvous.pb.h"
#include "rendezvous/core/directive.h"
#include "rendezvous/core/event.h"
#include "rendezvous/core/snapshot.h"
#include "rendezvous/core/types.h"

namespace muster::rendezvous {

void ToWire(const Event& event, v1::AgentEvent* wire);
void ToWire(const Directive& directive, v1::Directive* wire);
void ToWire(const JobSnapshot& snapshot, v1::JobDescription* wire);
void ToWire(const JobEnd& end, v1::JobEnd* wire);

// Strings that people see are cut to their limits in both directions, and whatever is not text in
// them becomes '?' (printable.h), so that no node can control another's terminal. Everything else
// is taken as it is: the Coordinator decides whether numbers and names make sense. An event of a
// kind this end does not know (a newer agent's) is a KeepAlive: all it tells us is that the agent
// is alive.
Event FromWire(const v1::AgentEvent& wire);
// A directive of a kind this end does not know (a newer daemon's) is a Waiting with an empty
// sentence, which says nothing.
Directive FromWire(const v1::Directive& wire);
// A state that this end does not know is the first of its kind: gathering, or joined.
JobSnapshot FromWire(const v1::JobDescription& wire);
JobEnd FromWire(const v1::JobEnd& wire);

}  // namespace muster::rendezvous
