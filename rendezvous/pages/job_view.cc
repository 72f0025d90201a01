#include "rendezvous/pages/job_view.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "base/text.h"
#include "rendezvous/core/values/phrases.h"

namespace muster::rendezvous {
namespace {

using base::Json;

Cell Ago(std::optional<Duration> time) {
  return time ? Cell("", *time, " ago") : Cell();
}

// Whether the node counts in the current round.
bool IsIn(const JobSnapshot& job, const NodeSnapshot& node) {
  return job.state == JobState::kGathering ? node.state == NodeState::kJoined
                                           : node.group_rank >= 0;
}

std::string NodesOf(const JobSnapshot& job) {
  const auto in = std::count_if(job.nodes.begin(), job.nodes.end(),
                                [&job](const NodeSnapshot& node) { return IsIn(job, node); });
  const int min = job.settings.min_nodes, max = job.settings.max_nodes;
  return absl::StrCat(in, " of ", min == max ? "" : absl::StrCat(min, " to "), max);
}

std::string RanksOf(const JobSnapshot& job) {
  const int ranks = CountRanks(job);
  return ranks == 0 ? "" : absl::StrCat(ranks);
}

std::string RestartsOf(const JobSnapshot& job) {
  return absl::StrCat(job.restart_count, " of ", job.settings.max_restarts);
}

std::string RangeOfRanks(std::optional<int> first, int slots) {
  if (!first) return "";
  return slots == 1 ? absl::StrCat(*first) : absl::StrCat(*first, "-", *first + slots - 1);
}

std::string Measured(double seconds) {
  return base::Measured(std::chrono::duration<double>(seconds));
}

std::string Number(std::optional<double> number) {
  return number ? absl::StrFormat("%.4g", *number) : "";
}

std::string PhasesOf(const RankProgress& told) {
  return absl::StrJoin(told.phases, ", ", [](std::string* out, const PhaseTime& phase) {
    absl::StrAppend(out, phase.name, " ", Measured(phase.seconds));
  });
}

Cell SlownessOf(const std::optional<Straggling>& straggling) {
  if (!straggling) return {};
  return {absl::StrCat(std::lround(100 * straggling->slower), " % slower, most in ",
                       straggling->phase, ", for "),
          straggling->age};
}

// Whether its time goes on.
bool Runs(const JobSnapshot& job, const RoundSnapshot& round) {
  return round.gathered && !round.end && job.state == JobState::kRunning;
}

Json ToJson(const Cell& cell) {
  if (!cell.time) return cell.before;
  const double seconds = std::chrono::duration<double>(*cell.time).count();
  return Json::array({cell.before, std::round(1000 * seconds) / 1000, cell.after});
}

Json ToJson(const Table& table) {
  Json rows = Json::array();
  for (const Row& row : table.rows) {
    Json cells = Json::array();
    for (const Cell& cell : row.cells) cells.push_back(ToJson(cell));
    rows.push_back({{"cells", std::move(cells)}, {"stands_out", row.stands_out}});
  }
  return {{"columns", table.columns}, {"rows", std::move(rows)}, {"more", table.left_out}};
}

}  // namespace

std::string CellText(const Cell& cell) {
  return cell.time ? absl::StrCat(cell.before, base::Elapsed(*cell.time), cell.after) : cell.before;
}

std::string TableText(const Table& table) {
  if (table.rows.empty()) return "";
  std::vector<std::vector<std::string>> rows = {{table.columns.begin(), table.columns.end()}};
  for (const Row& row : table.rows) {
    std::transform(row.cells.begin(), row.cells.end(), std::back_inserter(rows.emplace_back()),
                   CellText);
  }
  const std::string more =
      table.left_out > 0 ? absl::StrCat("and ", table.left_out, " more; --json shows all\n") : "";
  return base::TextTable(std::move(rows)) + more;
}

Table JobTable(const std::vector<JobSnapshot>& jobs) {
  Table table{{"JOB", "STATE", "ROUND", "NODES", "RANKS", "RESTARTS", "MESSAGE"}};
  for (const JobSnapshot& job : jobs) {
    table.rows.push_back(
        {{job.run_id, StateWord(job), absl::StrCat(job.round), NodesOf(job), RanksOf(job),
          RestartsOf(job),
          job.ended_ago ? Cell("", *job.ended_ago, " ago: " + job.sentence) : Cell(job.sentence)}});
  }
  return table;
}

Table NodeTable(const JobSnapshot& job) {
  Table table{{"HOST", "NODE", "RANKS", "STATE", "SINCE", "HEARD", "ADDRESS", "DEVICES", "PLACE"}};
  const std::vector<std::optional<int>> firsts = FirstRanks(job);
  for (std::size_t i = 0; i < job.nodes.size(); ++i) {
    const NodeSnapshot& node = job.nodes[i];
    table.rows.push_back({{node.node.host, node.group_rank < 0 ? "" : absl::StrCat(node.group_rank),
                           RangeOfRanks(firsts[i], node.node.slots), StateName(node.state),
                           Ago(node.state_ago), Ago(node.heard_ago), node.node.address,
                           absl::StrJoin(node.node.devices, ","), node.rank_reason}});
  }
  return table;
}

Table RoundTable(const JobSnapshot& job) {
  Table table{{"ROUND", "BEGAN", "GATHERED", "RAN", "NODES", "RANKS", "OVER"}};
  for (const RoundSnapshot& round : job.rounds) {
    const bool ran = round.gathered.has_value();
    table.rows.push_back(
        {{absl::StrCat(round.number), Ago(round.opened_ago),
          ran ? base::Elapsed(*round.gathered) : "",
          Runs(job, round) ? Cell("", round.ran) : Cell(ran ? base::Elapsed(round.ran) : ""),
          ran ? absl::StrCat(round.nodes) : "", ran ? absl::StrCat(round.workers) : "",
          round.end || !job.outcome ? round.reason : absl::StrCat("the job ", StateWord(job))}});
  }
  return table;
}

Table RankTable(const JobSnapshot& job, std::size_t most) {
  Table table{{"RANK", "HOST"}};
  table.columns.insert(table.columns.end(), std::begin(kStepColumns), std::end(kStepColumns));
  const ShownRanks shown = ChooseRanks({&job, 1}, most);
  for (const auto* const ranks : {&shown.first, &shown.more_stragglers}) {
    for (const auto& [of, node, rank] : *ranks) {
      Row row{{absl::StrCat(rank.rank), node.node.host}, rank.straggling.has_value()};
      std::ranges::move(StepCells(rank), std::back_inserter(row.cells));
      table.rows.push_back(std::move(row));
    }
  }
  table.left_out = shown.left_out;
  return table;
}

std::vector<Cell> StepCells(const RankSnapshot& rank) {
  const RankProgress& told = rank.told;
  return {told.step ? absl::StrCat(*told.step) : "",
          Number(told.loss),
          SlownessOf(rank.straggling),
          told.step_seconds ? Measured(*told.step_seconds) : "",
          Number(told.samples_per_second),
          Ago(told.ago),
          PhasesOf(told)};
}

Table RankAlertTable(const JobSnapshot& job) {
  Table table{{"RANK", "HOST", "SINCE", "TROUBLE"}};
  for (const NodeSnapshot& node : job.nodes) {
    for (const RankAlertSnapshot& alert : node.alerts) {
      if (table.rows.size() == kMostShown) {
        ++table.left_out;
        continue;
      }
      table.rows.push_back(
          {{absl::StrCat(alert.rank), node.node.host, Ago(alert.told.ago), alert.told.what}});
    }
  }
  return table;
}

const char* StateWord(const JobSnapshot& job) {
  return job.outcome ? Word(*job.outcome) : StateName(job.state);
}

const char* Word(VerdictKind outcome) {
  switch (outcome) {
    case VerdictKind::kSucceeded:
      return "succeeded";
    case VerdictKind::kWorkerFailed:
      return "failed";
    case VerdictKind::kJoinTimeout:
      return "timed out";
    case VerdictKind::kClosed:
      return "closed";
  }
  return "ended";
}

std::vector<std::pair<const char*, Cell>> FactsOf(const JobSnapshot& job) {
  const JobSteps steps = StepsOf(job);
  std::vector<std::pair<const char*, Cell>> facts;
  const auto add = [&facts](const char* name, Cell cell) {
    if (cell.time || !cell.before.empty()) facts.emplace_back(name, std::move(cell));
  };
  add("STATE", StateWord(job));
  add("ROUND", absl::StrCat(job.round));
  add("NODES", NodesOf(job));
  add("RANKS", RanksOf(job));
  add("RESTARTS", RestartsOf(job));
  add("AGE", job.state == JobState::kEnded ? Cell(base::Elapsed(job.age)) : Cell("", job.age));
  add("ENDED", Ago(job.ended_ago));
  if (job.age > Duration::zero()) {
    add("GOODPUT", absl::StrCat(static_cast<int>(100 * Goodput(job)), " %"));
  }
  add("STEP", steps.step ? absl::StrCat(*steps.step) : "");
  add("LOSS", Number(steps.loss));
  add("SAMPLES/S", Number(steps.samples_per_second));
  add("STRAGGLERS", steps.stragglers ? absl::StrCat(*steps.stragglers) : "");
  return facts;
}

Json ViewJson(const JobSnapshot& job) {
  Json facts = Json::array();
  for (const auto& [name, cell] : FactsOf(job)) facts.push_back(Json::array({name, ToJson(cell)}));
  return {{"state", StateWord(job)},
          {"facts", std::move(facts)},
          {"alerts", ToJson(RankAlertTable(job))},
          {"ranks", ToJson(RankTable(job))},
          {"rounds", ToJson(RoundTable(job))}};
}

ShownRanks ChooseRanks(std::span<const JobSnapshot> jobs, std::size_t most) {
  ShownRanks shown;
  for (const JobSnapshot& job : jobs) {
    for (const NodeSnapshot& node : job.nodes) {
      for (const RankSnapshot& rank : node.ranks) {
        std::vector<ShownRank>& list =
            shown.first.size() < most ? shown.first : shown.more_stragglers;
        if ((&list == &shown.first || rank.straggling) && list.size() < most) {
          list.push_back({job, node, rank});
        } else {
          ++shown.left_out;
        }
      }
    }
  }
  return shown;
}

JobSteps StepsOf(const JobSnapshot& job) {
  JobSteps steps;
  for (const NodeSnapshot& node : job.nodes) {
    for (const RankSnapshot& rank : node.ranks) {
      const RankProgress& told = rank.told;
      if (told.step) steps.step = std::min(steps.step.value_or(*told.step), *told.step);
      if (!steps.loss) steps.loss = told.loss;
      if (told.samples_per_second) {
        steps.samples_per_second = steps.samples_per_second.value_or(0) + *told.samples_per_second;
      }
      steps.stragglers = steps.stragglers.value_or(0) + (rank.straggling ? 1 : 0);
    }
  }
  return steps;
}

std::vector<std::optional<int>> FirstRanks(const JobSnapshot& job) {
  std::vector<std::optional<int>> firsts;
  int next_node = 0;
  int next_rank = 0;
  for (const NodeSnapshot& node : job.nodes) {
    if (node.group_rank != next_node) {
      firsts.push_back(std::nullopt);
      continue;
    }
    firsts.push_back(next_rank);
    ++next_node;
    next_rank += node.node.slots;
  }
  return firsts;
}

double Goodput(const JobSnapshot& job) {
  if (job.age <= Duration::zero()) return 0;
  return std::chrono::duration<double>(job.productive) / std::chrono::duration<double>(job.age);
}

int CountRanks(const JobSnapshot& job) {
  int ranks = 0;
  for (const NodeSnapshot& node : job.nodes) {
    if (node.group_rank >= 0) ranks += node.node.slots;
  }
  return ranks;
}

}  // namespace muster::rendezvous
