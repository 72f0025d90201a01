#include "rendezvous/core/job/log_places.h"

namespace muster::rendezvous {

LogPlacesOfRound PlacesOf(RoundNumber round, const std::string& reason,
                          const std::vector<Placement>& members,
                          const std::vector<AttendeeId>& attendees) {
  LogPlacesOfRound places{.round = round, .reason = reason, .places = {}};
  places.places.reserve(members.size());
  int first_rank = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const NodeInfo& node = members[i].node;
    places.places.push_back({.attendee = attendees[i],
                             .host = node.host,
                             .first_rank = first_rank,
                             .workers = node.slots,
                             .delivers = node.delivers_logs});
    first_rank += node.slots;
  }
  return places;
}

}  // namespace muster::rendezvous
