// What a node is doing, on the wire.
#pragma once

#include "proto/rendezvous.pb.h"
#include "rendezvous/core/snapshot.h"

namespace muster::rendezvous {

v1::NodeDescription::State ToWire(NodeState state);
// A state that this end does not know is kJoined: the node exists, and no more is known.
NodeState FromWire(v1::NodeDescription::State state);

}  // namespace muster::rendezvous
