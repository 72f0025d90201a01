#include "launcher/replay/incident_groups.h"

#include <unordered_map>

#include "launcher/replay/incidents.h"

namespace muster::launcher {

std::vector<Incident> Besides(const Timeline& timeline) {
  std::vector<Incident> besides;
  for (const Incident& incident : timeline.incidents) {
    const bool is_follow_up = incident.kind == AgentEventKind::kEvidence;
    if (!EndsRound(incident.kind) && !is_follow_up) besides.push_back(incident);
  }
  return besides;
}

std::vector<IncidentGroup> GroupIncidents(const std::vector<Incident>& incidents, std::size_t most,
                                          std::size_t* left_out) {
  std::vector<IncidentGroup> groups;
  std::unordered_map<std::string, std::size_t> latest;  // by words
  std::size_t left = 0;
  for (const Incident& incident : incidents) {
    const auto found = latest.find(incident.what);
    if (found != latest.end() &&
        incident.at - groups[found->second].at <= std::chrono::seconds(1)) {
      ++groups[found->second].count;
    } else if (groups.size() < most) {
      latest[incident.what] = groups.size();
      groups.push_back({.at = incident.at,
                        .what = incident.what,
                        .count = 1,
                        .node = incident.node,
                        .rank = incident.rank});
    } else {
      ++left;
    }
  }
  if (left_out != nullptr) *left_out = left;
  return groups;
}

}  // namespace muster::launcher
