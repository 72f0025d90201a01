// What is asked and told of workers' output, to and from the wire (proto/rendezvous.proto).
#pragma once

#include "proto/rendezvous.pb.h"
#include "rendezvous/core/directive.h"
#include "rendezvous/core/log_request.h"

namespace muster::rendezvous {

void ToWire(const LogRequest& request, v1::LogRequest* wire);
void ToWire(const LogWanted& wanted, v1::LogWanted* wire);
void ToWire(const LogPart& part, v1::LogPart* wire);
// A LogRound, which no agent says, becomes nothing.
void ToWire(const LogPart& part, v1::LogDelivery* wire);

// Numbers are taken as they are: whoever is asked decides whether they make sense. Sentences are
// cut and cleaned (printable.h); the bytes of the output are what they are, but for what is longer
// than a chunk (limits::kLogChunkBytes), which no agent sends and which is cut.
LogRequest FromWire(const v1::LogRequest& wire);
LogWanted FromWire(const v1::LogWanted& wire);
// A part of a kind that this end does not know is a notice that says so. The message's bytes are
// moved out of it.
LogPart FromWire(v1::LogPart&& wire);
// Of a message that is neither the first nor the last.
LogPart FromWire(v1::LogDelivery&& wire);

}  // namespace muster::rendezvous
