#include "launcher/replay/page_data.h"

#include <algorithm>
#include <string>
#include <utility>

#include "launcher/replay/incident_groups.h"

namespace muster::launcher {
namespace {

using base::Json;

constexpr std::size_t kMostEvents = 50;

char StateOf(const RoundNode& member) {
  if (member.end == "succeeded") return 's';
  if (member.end == "failed") return 'f';
  if (!member.gone) return 'e';
  return member.started ? 'x' : 'w';
}

Json LayoutOf(const RoundSpan& round) {
  Json layout = Json::array();
  for (const RoundNode& member : round.members) {
    layout.push_back(Json::array({member.node, member.first_rank, member.workers}));
  }
  return layout;
}

void AddEvents(const RoundSpan& round, Json& json) {
  std::size_t more = 0;
  json["events"] = Json::array();
  for (const IncidentGroup& group : GroupIncidents(round.incidents, kMostEvents, &more)) {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(group.at).count();
    json["events"].push_back(Json::array({ms, group.what, group.count}));
  }
  json["more"] = more;
}

Json RoundJson(const RoundSpan& round, std::size_t layout) {
  Json json;
  json["number"] = round.number;
  json["layout"] = layout;
  std::string states;
  json["failed"] = Json::array();
  for (std::size_t at = 0; at < round.members.size(); ++at) {
    const RoundNode& member = round.members[at];
    states += StateOf(member);
    if (member.failed_rank >= 0) {
      json["failed"].push_back(Json::array({at, member.failed_rank}));
    }
  }
  json["states"] = std::move(states);
  json["missing"] = std::max(0, round.nodes - static_cast<int>(round.members.size()));
  AddEvents(round, json);
  return json;
}

// The one to look at first: the last that failed, or else the last.
std::size_t ChosenRound(const Timeline& timeline) {
  for (std::size_t at = timeline.rounds.size(); at > 0; --at) {
    if (timeline.rounds[at - 1].detected) return at - 1;
  }
  return timeline.rounds.empty() ? 0 : timeline.rounds.size() - 1;
}

}  // namespace

base::Json PageData(const Timeline& timeline) {
  Json data;
  data["nodes"] = Json::array();
  for (const TimelineNode& node : timeline.nodes) data["nodes"].push_back(node.id);
  int most = 0;
  data["layouts"] = Json::array();
  data["rounds"] = Json::array();
  for (const RoundSpan& round : timeline.rounds) {
    int ranks = 0;
    for (const RoundNode& member : round.members) ranks += member.workers;
    most = std::max(most, ranks);
    Json layout = LayoutOf(round);
    if (data["layouts"].empty() || data["layouts"].back() != layout) {
      data["layouts"].push_back(std::move(layout));
    }
    data["rounds"].push_back(RoundJson(round, data["layouts"].size() - 1));
  }
  data["byNode"] = most > kMostRankCells;
  data["chosen"] = ChosenRound(timeline);
  return data;
}

}  // namespace muster::launcher
