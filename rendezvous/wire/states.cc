#include "rendezvous/wire/states.h"

namespace muster::rendezvous {

v1::NodeDescription::State ToWire(NodeState state) {
  switch (state) {
    case NodeState::kJoined:
      return v1::NodeDescription::JOINED;
    case NodeState::kStarting:
      return v1::NodeDescription::STARTING;
    case NodeState::kRunning:
      return v1::NodeDescription::RUNNING;
    case NodeState::kSucceeded:
      return v1::NodeDescription::SUCCEEDED;
    case NodeState::kStopping:
      return v1::NodeDescription::STOPPING;
    case NodeState::kSpare:
      return v1::NodeDescription::SPARE;
  }
  return v1::NodeDescription::STATE_UNSPECIFIED;
}

NodeState FromWire(v1::NodeDescription::State state) {
  switch (state) {
    case v1::NodeDescription::STARTING:
      return NodeState::kStarting;
    case v1::NodeDescription::RUNNING:
      return NodeState::kRunning;
    case v1::NodeDescription::SUCCEEDED:
      return NodeState::kSucceeded;
    case v1::NodeDescription::STOPPING:
      return NodeState::kStopping;
    case v1::NodeDescription::SPARE:
      return NodeState::kSpare;
    default:
      return NodeState::kJoined;
  }
}

}  // namespace muster::rendezvous
