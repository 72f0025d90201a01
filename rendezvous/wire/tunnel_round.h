// The round and job that a tunnel serves.
#pragma once

#include <string>

#include "proto/tunnel.pb.h"
#include "rendezvous/core/values/types.h"

namespace muster::rendezvous {

struct TunnelRound {
  std::string run_id;
  RoundId round;

  bool operator==(const TunnelRound&) const = default;
};

inline void ToWire(const TunnelRound& round, tunnel::v1::Open* wire) {
  wire->set_run_id(round.run_id);
  wire->set_round(round.round.number);
  wire->set_incarnation(round.round.incarnation);
}

inline TunnelRound FromWire(const tunnel::v1::Open& wire) {
  return {wire.run_id(), {.incarnation = wire.incarnation(), .number = wire.round()}};
}

}  // namespace muster::rendezvous
