// The job as docs/observing.md says.
#include <chrono>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "rendezvous/core/values/phrases.h"
#include "rendezvous/pages/job_view.h"

namespace muster::rendezvous {
namespace {

using base::Json;

double SecondsOnWire(Duration duration) {
  // Milliseconds are what the wire has of it.
  return static_cast<double>(
             std::chrono::duration_cast<std::chrono::milliseconds>(duration).count()) /
         1000;
}

// To the microsecond, as what has no more digits is read more easily.
Json SecondsJson(double seconds) {
  return std::round(seconds * 1e6) / 1e6;
}

Json SecondsJson(std::optional<double> seconds) {
  return seconds ? SecondsJson(*seconds) : Json(nullptr);
}

// JSON has no number that is not finite; Protobuf writes these words, too.
Json LossJson(std::optional<double> loss) {
  if (!loss) return nullptr;
  if (std::isnan(*loss)) return "NaN";
  if (std::isinf(*loss)) return *loss > 0 ? "Infinity" : "-Infinity";
  return *loss;
}

Json ToJson(const RankSnapshot& rank) {
  const RankProgress& told = rank.told;
  Json phases = Json::array();
  for (const PhaseTime& phase : told.phases) {
    phases.push_back(
        {{"name", phase.name}, {"seconds", SecondsJson(phase.seconds)}, {"waits", phase.waits}});
  }
  Json straggler = nullptr;
  if (rank.straggling) {
    straggler = {{"slower", std::round(rank.straggling->slower * 1000) / 1000},
                 {"phase", rank.straggling->phase},
                 {"for_seconds", SecondsOnWire(rank.straggling->age)}};
  }
  return {{"rank", rank.rank},
          {"step", told.step ? Json(*told.step) : Json(nullptr)},
          {"beat_seconds_ago", SecondsOnWire(told.ago)},
          {"step_seconds", SecondsJson(told.step_seconds)},
          {"own_seconds", SecondsJson(OwnSeconds(told))},
          {"loss", LossJson(told.loss)},
          {"samples_per_second",
           told.samples_per_second ? Json(*told.samples_per_second) : Json(nullptr)},
          {"phases", std::move(phases)},
          {"straggler", std::move(straggler)}};
}

Json ToJson(const RankAlertSnapshot& alert) {
  return {{"rank", alert.rank},
          {"kind", Name(alert.told.kind)},
          {"what", alert.told.what},
          {"for_seconds", SecondsOnWire(alert.told.ago)}};
}

Json ToJson(const NodeSnapshot& node, std::optional<int> first_rank) {
  Json ranks = Json::array();
  for (const RankSnapshot& rank : node.ranks) ranks.push_back(ToJson(rank));
  Json alerts = Json::array();
  for (const RankAlertSnapshot& alert : node.alerts) alerts.push_back(ToJson(alert));
  const Json node_rank = node.group_rank < 0 ? Json(nullptr) : Json(node.group_rank);
  return {
      {"node_id", node.node.node_id},
      {"host", node.node.host},
      {"address", node.node.address},
      {"state", StateName(node.state)},
      {"state_seconds", node.state_ago ? Json(SecondsOnWire(*node.state_ago)) : Json(nullptr)},
      {"node_rank", node_rank},
      {"first_rank", first_rank ? Json(*first_rank) : Json(nullptr)},
      {"nproc", node.node.slots},
      {"role", node.node.role},
      {"devices", node.node.devices},
      {"place", node.rank_reason},
      {"heard_seconds_ago", node.heard_ago ? Json(SecondsOnWire(*node.heard_ago)) : Json(nullptr)},
      {"ranks", std::move(ranks)},
      {"alerts", std::move(alerts)}};
}

Json ToJson(const RoundSnapshot& round) {
  return {
      {"round", round.number},
      {"opened_seconds_ago", SecondsOnWire(round.opened_ago)},
      {"gathered_seconds", round.gathered ? Json(SecondsOnWire(*round.gathered)) : Json(nullptr)},
      {"ran_seconds", SecondsOnWire(round.ran)},
      {"nodes", round.nodes},
      {"workers", round.workers},
      {"failed_rank", round.failed_rank ? Json(*round.failed_rank) : Json(nullptr)},
      {"end", round.end ? Json(Name(*round.end)) : Json(nullptr)},
      {"reason", round.reason}};
}

Json ToJson(const WorkerFailure& failure) {
  return {{"rank", failure.rank},
          {"local_rank", failure.local_rank},
          {"host", failure.host},
          {"pid", failure.pid},
          {"exit_code", failure.signal == 0 ? Json(failure.exit_code) : Json(nullptr)},
          {"signal", failure.signal == 0 ? Json(nullptr) : Json(failure.signal)},
          {"what", failure.what},
          {"error", failure.error_message},
          {"traceback", failure.error_traceback},
          {"stderr", failure.stderr_tail},
          {"operations", failure.operations},
          {"log", failure.log_path},
          {"error_file", failure.error_file}};
}

}  // namespace

Json ToJson(const JobSnapshot& job) {
  Json rounds = Json::array();
  for (const RoundSnapshot& round : job.rounds) rounds.push_back(ToJson(round));
  Json nodes = Json::array();
  const std::vector<std::optional<int>> firsts = FirstRanks(job);
  for (std::size_t i = 0; i < job.nodes.size(); ++i) {
    nodes.push_back(ToJson(job.nodes[i], firsts[i]));
  }
  return {
      {"run_id", job.run_id},
      {"state", StateName(job.state)},
      {"round", job.round},
      {"message", job.sentence},
      {"min_nodes", job.settings.min_nodes},
      {"max_nodes", job.settings.max_nodes},
      {"restarts", job.restart_count},
      {"max_restarts", job.settings.max_restarts},
      {"age_seconds", SecondsOnWire(job.age)},
      {"productive_seconds", SecondsOnWire(job.productive)},
      {"goodput", Goodput(job)},
      {"ended_seconds_ago", job.ended_ago ? Json(SecondsOnWire(*job.ended_ago)) : Json(nullptr)},
      {"outcome", job.outcome ? Json(Name(*job.outcome)) : Json(nullptr)},
      {"failure", job.failure ? ToJson(*job.failure) : Json(nullptr)},
      {"store_keys", job.store_keys},
      {"store_bytes", job.store_bytes},
      {"log_bytes_lost", job.log_bytes_lost},
      {"rounds", std::move(rounds)},
      {"nodes", std::move(nodes)}};
}

Json ToJson(const std::vector<JobSnapshot>& jobs) {
  Json array = Json::array();
  for (const JobSnapshot& job : jobs) array.push_back(ToJson(job));
  return array;
}

}  // namespace muster::rendezvous
