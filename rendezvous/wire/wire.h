// Between the core's values and their form on the wire (proto/rendezvous.proto). Used by both ends,
// so that one file knows how a field is called, in which unit it travels and what it may not be.
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

// Strings that people see are cut to their limits in both directions, and what is no text in them
// becomes '?' (printable.h), so that no node can write to another's terminal. All else is taken as
// it is: whether the numbers and names make sense the Coordinator decides.
// An event of a kind this end does not know (a newer agent's) is a KeepAlive: being heard of is all
// that it is to us.
Event FromWire(const v1::AgentEvent& wire);
// A directive of a kind this end does not know (a newer daemon's) is a Waiting with an empty
// sentence, which says nothing.
Directive FromWire(const v1::Directive& wire);
// A state that this end does not know is the first of its kind: gathering, or joined.
JobSnapshot FromWire(const v1::JobDescription& wire);

}  // namespace muster::rendezvous
