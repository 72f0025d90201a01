#include "rendezvous/core/job/contested_rank.h"

#include "absl/strings/str_cat.h"

namespace muster::rendezvous {
namespace {

constexpr char kAdvice[] = "; give each node a --node-rank of its own";

}  // namespace

std::string ContestedRank::Question() const {
  return absl::StrCat("node rank ", rank, " of job '", run_id, "' is node ", holder,
                      "'s; this node waits until it is known whether that one is still there");
}

std::string ContestedRank::Refusal() const {
  return absl::StrCat("node rank ", rank, " of job '", run_id, "' is node ", holder,
                      "'s already, and node ", newcomer, " asks for it, too", kAdvice);
}

std::string ContestedRank::Warning() const {
  return absl::StrCat("node ", newcomer, " was refused: it asked for node rank ", rank,
                      ", which this node has", kAdvice);
}

std::string ContestedRank::Clash() const {
  return absl::StrCat("nodes ", holder, " and ", newcomer, " both have node rank ", rank, kAdvice);
}

}  // namespace muster::rendezvous
