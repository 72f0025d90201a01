// What workers have told of their steps, on the wire.
#pragma once

#include <vector>

#include "proto/rendezvous.pb.h"
#include "rendezvous/core/progress.h"
#include "rendezvous/core/snapshot.h"

namespace muster::rendezvous {

// `wire` must be empty. Of more than kMostPhases names, over all ranks, the later ones are left
// out.
inline constexpr int kMostPhases = 32;
void ToWire(const Progress& progress, v1::Progress* wire);
void ToWire(const std::vector<RankSnapshot>& ranks, v1::Progress* wire);
// May be added to a message that has ranks.
void ToWire(const std::vector<TroubleSnapshot>& troubles, v1::Progress* wire);

// Phases with a time that is none, or without a name, are left out, and so is any other number that
// must not be as it is. Of a rank that is told twice the last is meant.
Progress FromWire(const v1::Progress& wire);
std::vector<RankSnapshot> RanksFromWire(const v1::Progress& wire);
std::vector<TroubleSnapshot> TroublesFromWire(const v1::Progress& wire);

}  // namespace muster::rendezvous
