// Wire conversions of what comes from workers: output (proto/rendezvous.proto), and their store's
// traffic in a tunnel (proto/tunnel.proto).
#pragma once

#include <string>
#include <vector>

#include "proto/rendezvous.pb.h"
#include "proto/tunnel.pb.h"
#include "rendezvous/core/values/log_request.h"
#include "rendezvous/core/values/messages.h"
#include "rendezvous/core/values/progress.h"
#include "rendezvous/core/values/snapshot.h"
#include "rendezvous/core/values/types.h"

namespace muster::rendezvous {

void ToWire(const LogRequest& request, v1::LogRequest* wire);
void ToWire(const LogWanted& wanted, v1::LogWanted* wire);
void ToWire(const LogPart& part, v1::LogPart* wire);
// A LogRound, which agents never send, becomes nothing.
void ToWire(const LogPart& part, v1::LogDelivery* wire);

// Numbers pass unchanged: the receiver checks them. Sentences are cut and cleaned (phrases.h);
// output bytes pass unchanged, except that a chunk longer than limits::kLogChunkBytes, which no
// agent sends, is cut.
LogRequest FromWire(const v1::LogRequest& wire);
LogWanted FromWire(const v1::LogWanted& wire);
// A part of an unknown kind becomes a notice that says so. The message's bytes are moved out.
LogPart FromWire(v1::LogPart&& wire);
// For a message that is neither the first nor the last.
LogPart FromWire(v1::LogDelivery&& wire);

// Wire conversions for workers' reports of their steps.

// `wire` must be empty. Phase names beyond kMostPhases, over all ranks, are dropped.
inline constexpr int kMostPhases = 32;
void ToWire(const Progress& progress, v1::Progress* wire);
void ToWire(const std::vector<RankSnapshot>& ranks, v1::Progress* wire);
// May be added to a message that already has ranks.
void ToWire(const std::vector<RankAlertSnapshot>& alerts, v1::Progress* wire);

// Drops phases with an invalid time or without a name, and any other invalid number. If a rank
// occurs twice, the last one counts.
Progress FromWire(const v1::Progress& wire);
std::vector<RankSnapshot> RanksFromWire(const v1::Progress& wire);
std::vector<RankAlertSnapshot> RankAlertsFromWire(const v1::Progress& wire);

// The round and job that a tunnel serves.

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
