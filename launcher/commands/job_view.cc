#include "launcher/commands/job_view.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/json.h"
#include "base/phrases.h"
#include "base/text_table.h"
#include "rendezvous/core/phrases.h"
#include "rendezvous/pages/job_json.h"

namespace muster::launcher {
namespace {

using rendezvous::JobSnapshot;
using rendezvous::JobState;
using rendezvous::NodeSnapshot;
using rendezvous::NodeState;

// Whether the node counts in the current round.
bool IsIn(const JobSnapshot& job, const NodeSnapshot& node) {
  return job.state == JobState::kGathering ? node.state == NodeState::kJoined
                                           : node.group_rank >= 0;
}

std::string Nodes(const JobSnapshot& job) {
  const auto in = std::count_if(job.nodes.begin(), job.nodes.end(),
                                [&job](const NodeSnapshot& node) { return IsIn(job, node); });
  const int min = job.settings.min_nodes, max = job.settings.max_nodes;
  return absl::StrCat(in, " of ", min == max ? "" : absl::StrCat(min, " to "), max);
}

// How it ended, rather than that it did.
const char* State(const JobSnapshot& job) {
  if (!job.outcome) return StateName(job.state);
  switch (*job.outcome) {
    case rendezvous::VerdictKind::kSucceeded:
      return "succeeded";
    case rendezvous::VerdictKind::kWorkerFailed:
      return "failed";
    case rendezvous::VerdictKind::kJoinTimeout:
      return "timed out";
    case rendezvous::VerdictKind::kClosed:
      return "closed";
  }
  return "ended";
}

std::string Message(const JobSnapshot& job) {
  if (!job.ended_ago) return job.sentence;
  return absl::StrCat(base::Seconds(*job.ended_ago), " ago: ", job.sentence);
}

std::string Ago(std::optional<rendezvous::Duration> time) {
  return time ? absl::StrCat(base::Seconds(*time), " ago") : "";
}

std::string RangeOfRanks(std::optional<int> first, int slots) {
  if (!first) return "";
  return slots == 1 ? absl::StrCat(*first) : absl::StrCat(*first, "-", *first + slots - 1);
}

// Three digits: "12.4 ms", "1.21 s".
std::string Precisely(double seconds) {
  return seconds < 1 ? absl::StrFormat("%.3g ms", 1000 * seconds)
                     : absl::StrFormat("%.3g s", seconds);
}

std::string Phases(const rendezvous::RankProgress& told) {
  std::vector<std::string> phases;
  for (const rendezvous::PhaseTime& phase : told.phases) {
    phases.push_back(absl::StrCat(phase.name, " ", Precisely(phase.seconds)));
  }
  return absl::StrJoin(phases, ", ");
}

std::string StragglerText(const std::optional<rendezvous::Straggling>& straggling) {
  if (!straggling) return "";
  return absl::StrCat(std::lround(100 * straggling->slower), " % slower, most in ",
                      straggling->phase, ", for ", base::Seconds(straggling->age));
}

std::vector<std::string> RankRow(const NodeSnapshot& node, const rendezvous::RankSnapshot& rank) {
  const RankWords words = InWords(rank);
  return {absl::StrCat(rank.rank),
          node.node.host,
          words.step,
          words.beat,
          words.step_time,
          words.loss,
          words.samples_per_second,
          words.phases,
          words.straggler};
}

// That fit on a screen.
constexpr std::size_t kMostRanks = 64;

}  // namespace

std::string JobTable(const std::vector<JobSnapshot>& jobs) {
  std::vector<std::vector<std::string>> rows = {
      {"JOB", "STATE", "ROUND", "NODES", "RANKS", "RESTARTS", "MESSAGE"}};
  for (const JobSnapshot& job : jobs) {
    const int ranks = CountRanks(job);
    rows.push_back({job.run_id, State(job), absl::StrCat(job.round), Nodes(job),
                    ranks == 0 ? "" : absl::StrCat(ranks),
                    absl::StrCat(job.restart_count, " of ", job.settings.max_restarts),
                    Message(job)});
  }
  return base::TextTable(std::move(rows));
}

std::string NodeTable(const JobSnapshot& job) {
  std::vector<std::vector<std::string>> rows = {
      {"HOST", "NODE", "RANKS", "STATE", "SINCE", "HEARD", "ADDRESS", "DEVICES", "PLACE"}};
  const std::vector<std::optional<int>> firsts = FirstRanks(job);
  for (std::size_t i = 0; i < job.nodes.size(); ++i) {
    const NodeSnapshot& node = job.nodes[i];
    rows.push_back({node.node.host, node.group_rank < 0 ? "" : absl::StrCat(node.group_rank),
                    RangeOfRanks(firsts[i], node.node.slots), StateName(node.state),
                    Ago(node.state_ago), Ago(node.heard_ago), node.node.address,
                    absl::StrJoin(node.node.devices, ","), node.rank_reason});
  }
  return base::TextTable(std::move(rows));
}

std::string RoundTable(const JobSnapshot& job) {
  std::vector<std::vector<std::string>> rows = {
      {"ROUND", "BEGAN", "GATHERED", "RAN", "NODES", "RANKS", "OVER"}};
  for (const rendezvous::RoundSnapshot& round : job.rounds) {
    const bool ran = round.gathered.has_value();
    rows.push_back(
        {absl::StrCat(round.number), absl::StrCat(base::Seconds(round.opened_ago), " ago"),
         ran ? base::Seconds(*round.gathered) : "", ran ? base::Seconds(round.ran) : "",
         ran ? absl::StrCat(round.nodes) : "", ran ? absl::StrCat(round.workers) : "",
         round.end || !job.outcome ? round.reason : absl::StrCat("the job ", State(job))});
  }
  return base::TextTable(std::move(rows));
}

std::string RankTable(const JobSnapshot& job) {
  std::vector<std::vector<std::string>> rows = {
      {"RANK", "HOST", "STEP", "BEAT", "STEP TIME", "LOSS", "SAMPLES/S", "PHASES", "STRAGGLER"}};
  std::size_t left_out = 0;
  std::size_t stragglers = 0;
  for (const NodeSnapshot& node : job.nodes) {
    for (const rendezvous::RankSnapshot& rank : node.ranks) {
      const bool is_first = rows.size() - stragglers <= kMostRanks;
      const bool is_shown = is_first || (rank.straggling && stragglers < kMostRanks);
      left_out += is_shown ? 0 : 1;
      stragglers += is_shown && !is_first ? 1 : 0;
      if (is_shown) rows.push_back(RankRow(node, rank));
    }
  }
  if (rows.size() == 1) return "";
  std::string table = base::TextTable(std::move(rows));
  if (left_out > 0) {
    absl::StrAppend(&table, "and ", base::Count(left_out, "more rank"), "; --json shows all\n");
  }
  return table;
}

RankWords InWords(const rendezvous::RankSnapshot& rank) {
  const rendezvous::RankProgress& told = rank.told;
  return {
      .step = told.step ? absl::StrCat(*told.step) : "",
      .beat = absl::StrCat(base::Seconds(told.ago), " ago"),
      .step_time = told.step_seconds ? Precisely(*told.step_seconds) : "",
      .loss = told.loss ? absl::StrFormat("%.4g", *told.loss) : "",
      .samples_per_second =
          told.samples_per_second ? absl::StrFormat("%.4g", *told.samples_per_second) : "",
      .phases = Phases(told),
      .straggler = StragglerText(rank.straggling),
  };
}

std::string TroubleTable(const JobSnapshot& job) {
  std::vector<std::vector<std::string>> rows = {{"RANK", "HOST", "SINCE", "TROUBLE"}};
  std::size_t left_out = 0;
  for (const NodeSnapshot& node : job.nodes) {
    for (const rendezvous::TroubleSnapshot& trouble : node.troubles) {
      if (rows.size() > kMostRanks) {
        ++left_out;
        continue;
      }
      rows.push_back({absl::StrCat(trouble.rank), node.node.host,
                      absl::StrCat(base::Seconds(trouble.told.ago), " ago"), trouble.told.what});
    }
  }
  if (rows.size() == 1) return "";
  std::string table = base::TextTable(std::move(rows));
  if (left_out > 0) absl::StrAppend(&table, "and ", left_out, " more; --json shows all\n");
  return table;
}

std::string JobsJson(const std::vector<JobSnapshot>& jobs) {
  return base::JsonText(rendezvous::ToJson(jobs), /*indent=*/2) + "\n";
}

}  // namespace muster::launcher
