#include "rendezvous/core/job/log_places.h"

namespace muster::rendezvous {

LogPlacesOfRound PlacesOf(RoundNumber round, const std::string& reason,
                          const std::vector<Placement>& members, const KeyMap<AttendeeId>& agents) {
  LogPlacesOfRound places{.round = round, .reason = reason, .places = {}};
  int first_rank = 0;
  for (const Placement& member : members) {
    // Of a round that was restored, one may have left whose workers had succeeded.
    const auto agent = agents.find(member.node.node_id);
    places.places.push_back({.attendee = agent == agents.end() ? 0 : agent->second,
                             .host = member.node.host,
                             .first_rank = first_rank,
                             .workers = member.node.slots,
                             .delivers = member.node.delivers_logs});
    first_rank += member.node.slots;
  }
  return places;
}

}  // namespace muster::rendezvous
