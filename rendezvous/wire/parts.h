// The values that messages are made of, on their way to and from the wire: each is part of more
// than one message, or of what the daemon's journal keeps.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "proto/rendezvous.pb.h"
#include "rendezvous/core/snapshot.h"
#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// Time travels in whole milliseconds. A hundred years is as good as any longer time, and does not
// overflow when added to now.
std::int64_t ToMs(Duration duration);
Duration FromMs(std::int64_t ms);

// 0 if it is not a port.
std::uint16_t FromPort(std::uint32_t port);

// What every string that people see goes through, both on its way out and on its way in.
std::string Line(std::string_view text);

void ToWire(const JobSettings& settings, v1::JobSettings* wire);
void ToWire(const SpokenVersions& speaks, v1::SpokenVersions* wire);
void ToWire(const NodeInfo& node, v1::NodeInfo* wire);
void ToWire(const WorkerFailure& failure, v1::WorkerFailure* wire);
void ToWire(const Verdict& verdict, v1::Verdict* wire);
v1::Verdict::Kind ToWire(VerdictKind kind);
void ToWire(const RoundSnapshot& round, v1::RoundDescription* wire);

JobSettings FromWire(const v1::JobSettings& wire);
// A number on the wire, whatever it is.
int Version(std::uint32_t wire);
SpokenVersions FromWire(const v1::SpokenVersions& wire);
NodeInfo FromWire(const v1::NodeInfo& wire);
WorkerFailure FromWire(const v1::WorkerFailure& wire);
Verdict FromWire(const v1::Verdict& wire);
// A kind that this end does not know is kClosed: the job has ended, and not with success.
VerdictKind FromWire(v1::Verdict::Kind kind);
RoundSnapshot FromWire(const v1::RoundDescription& wire);

}  // namespace muster::rendezvous
