// Versions of the wire between agents and daemons (proto/rendezvous.proto).
#pragma once

#include <optional>
#include <string>

namespace muster::rendezvous {

// What one end can speak. Both use the newest that both can; where there is none, they part with a
// sentence that says who is to be brought up to date.
//
//   1  before versions were told: who tells none speaks this one
//   2  Join and Resume tell what an agent speaks, Welcome what the two speak
//   3  AskToLeave is answered
//
// A field that may be ignored needs no version. One that must be understood gets the next, and is
// used only where that is spoken. A release drops a version only when its predecessor did not need
// it, so that neighbours always understand each other.
struct SpokenVersions {
  int oldest = 1;
  int newest = 3;

  bool operator==(const SpokenVersions&) const = default;
};

// Of one that tells nothing.
inline constexpr SpokenVersions kUntold{1, 1};

// From this version on a daemon decides which nodes a job can do without (LeaveAnswer).
inline constexpr int kLeaveAnswers = 3;

std::optional<int> CommonVersion(const SpokenVersions& a, const SpokenVersions& b);

// Why a daemon and a node cannot talk with each other; empty: they can.
std::string VersionObjection(const SpokenVersions& daemon, const SpokenVersions& node);

}  // namespace muster::rendezvous
