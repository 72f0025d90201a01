// Wire conversions of the values that are part of more than one message, or of the daemon's
// journal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "proto/rendezvous.pb.h"
#include "rendezvous/core/values/snapshot.h"
#include "rendezvous/core/values/types.h"

namespace muster::rendezvous {

// Time is sent in whole milliseconds. A hundred years stand for any longer time, and do not
// overflow when added to now.
std::int64_t ToMs(Duration duration);
Duration FromMs(std::int64_t ms);

// 0 if it is not a valid port.
std::uint16_t FromPort(std::uint32_t port);

// Applied to every string for people, in both directions.
std::string Line(std::string_view text);

// Leaves a name unchanged, as it is used for lookup; code that shows it makes it safe. A malformed
// name (phrases.h) becomes a Line.
std::string Name(const std::string& text);

// The counterpart of a value in a table of them; where there is none, 0 on the wire, or
// `otherwise`.
template <typename Core, typename Wire, std::size_t kCount>
Wire OnWire(const std::pair<Core, Wire> (&table)[kCount], Core value) {
  for (const auto& [core, wire] : table) {
    if (core == value) return wire;
  }
  return static_cast<Wire>(0);
}
template <typename Core, typename Wire, std::size_t kCount>
Core FromWire(const std::pair<Core, Wire> (&table)[kCount], Wire value, Core otherwise) {
  for (const auto& [core, wire] : table) {
    if (wire == value) return core;
  }
  return otherwise;
}

void ToWire(const JobSettings& settings, v1::JobSettings* wire);
void ToWire(const SpokenVersions& speaks, v1::SpokenVersions* wire);
void ToWire(const NodeInfo& node, v1::NodeInfo* wire);
void ToWire(const WorkerFailure& failure, v1::WorkerFailure* wire);
void ToWire(const Verdict& verdict, v1::Verdict* wire);
v1::Verdict::Kind ToWire(VerdictKind kind);
void ToWire(const RoundSnapshot& round, v1::RoundDescription* wire);

JobSettings FromWire(const v1::JobSettings& wire);
// Accepts any number from the wire.
int Version(std::uint32_t wire);
SpokenVersions FromWire(const v1::SpokenVersions& wire);
NodeInfo FromWire(const v1::NodeInfo& wire);
WorkerFailure FromWire(const v1::WorkerFailure& wire);
Verdict FromWire(const v1::Verdict& wire);
// An unknown kind becomes kClosed: the job has ended, and not with success.
VerdictKind FromWire(v1::Verdict::Kind kind);
RoundSnapshot FromWire(const v1::RoundDescription& wire);

// What a node is doing, on the wire.

v1::NodeDescription::State ToWire(NodeState state);
// An unknown state becomes kJoined: the node exists, and no more is known.
NodeState FromWire(v1::NodeDescription::State state);

}  // namespace muster::rendezvous
