#include "launcher/report/event_table.h"

#include <cstddef>

namespace muster::launcher {
namespace {

using enum EventField;
using enum AgentEventKind;
using Type = EventFieldRow::Type;

constexpr EventFieldRow kFields[] = {
    {kTime, "time", Type::kText, 0,
     R"(^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$)",
     "the node's wall clock, UTC"},
    {kMonotonic, "monotonic", Type::kNumber, 0, "",
     "seconds of the machine's CLOCK_MONOTONIC, to the microsecond: no clock step disturbs it, and "
     "all processes of a machine share it"},
    {kEvent, "event", Type::kText, 0, "", "what happened: a name of the table of events"},
    {kJob, "job", Type::kText, 0, "", "the run id"},
    {kNode, "node", Type::kText, 0, "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
     "the node's id, unique for each agent process"},
    {kVersion, "version", Type::kInteger, 1, "", "the format version of the lines that follow"},
    {kMuster, "muster", Type::kText, 0, "", "the version of the program that writes them"},
    {kWorkers, "workers", Type::kInteger, 1, "", "how many workers the node runs in each round"},
    {kRound, "round", Type::kInteger, 0, "", "the round it is about"},
    {kRank, "rank", Type::kInteger, 0, "", "the worker it is about: its global rank"},
    {kPid, "pid", Type::kInteger, 1, "", "that worker's pid on its node"},
    {kIncarnation, "incarnation", Type::kText, 0, "^[0-9a-f]{16}$",
     "which life of the job it is: no other job of that name has the same"},
    {kNodeRank, "node_rank", Type::kInteger, 0, "", "the node's rank among the round's nodes"},
    {kNodes, "nodes", Type::kInteger, 1, "", "how many nodes the round has"},
    {kFirstRank, "first_rank", Type::kInteger, 0, "", "the global rank of the node's first worker"},
    {kWorldSize, "world_size", Type::kInteger, 1, "", "how many workers the round has"},
    {kCause, "cause", Type::kText, 0, "", "more, for people; the table of events says what"},
};

constexpr EventFields kPlace =
    In(kIncarnation) | In(kNodeRank) | In(kNodes) | In(kFirstRank) | In(kWorldSize);
constexpr EventFields kOfRound = In(kRound) | In(kCause);
constexpr EventFields kOfWorker = In(kRound) | In(kRank);

constexpr EventRow kEvents[] = {
    {kLogOpened, "log_opened", In(kVersion) | In(kMuster) | In(kWorkers), 0,
     "the first line of each agent"},
    {kJoining, "joining", 0, 0, "the node asks for a place in the next round"},
    {kWaiting, "waiting", kOfRound, 0, "there is no place yet", "why not"},
    {kAssigned, "assigned", kOfRound | kPlace, 0, "the node has a place in a round",
     "why it has this rank"},
    {kWorkersStarted, "workers_started", In(kRound), 0, "every worker of the node runs"},
    {kFirstBeat, "first_beat", kOfWorker, 0,
     "a worker says for the first time in this round that it makes progress"},
    {kWorkerStopped, "worker_stopped", kOfWorker | In(kPid) | In(kCause), 0,
     "a worker is stopped, by SIGSTOP or the like", "what stopped it"},
    {kWorkerContinued, "worker_continued", kOfWorker | In(kPid), 0, "it continues"},
    {kOutputLost, "output_lost", kOfWorker | In(kCause), 0,
     "a log file of a worker does not take all that it prints", "which and why"},
    {kStraggler, "straggler", kOfRound, In(kRank),
     "a rank of the job is found to be slower than the others; in the log of node rank 0",
     "by how much and in what, a sentence"},
    {kStragglerOver, "straggler_over", kOfRound, In(kRank), "it no longer is",
     "after how long, a sentence"},
    {kHang, "hang_detected", kOfWorker | In(kCause), 0, "a worker gives no sign of life",
     "for how long"},
    {kOperations, "operations", kOfRound, 0, "in which operations the workers are",
     "which rank is where"},
    {kEvidence, "evidence", kOfWorker | In(kCause), 0,
     "what a worker was doing has been written down", "the file; empty if there is none"},
    {kUnfit, "health_check_failed", In(kCause), In(kRound), "the node's health check failed",
     "how"},
    {kWorkerFailed, "worker_failed", kOfWorker | In(kCause), In(kPid),
     "the first failure of a worker here in this round", "how it ended"},
    {kToldToStop, "told_to_stop", kOfRound, 0, "the rendezvous says that the round is over", "why"},
    {kStopping, "stopping", In(kCause), In(kRound), "the workers are being ended",
     "the signal that they get"},
    {kWorkersGone, "workers_gone", kOfRound, 0, "no worker of the node is left", "how they ended",
     "succeeded|failed|stopped"},
    {kSignal, "signal", In(kCause), In(kRound), "the agent was sent a signal", "its name"},
    {kDrained, "node_drained", In(kCause), In(kRound),
     "the node leaves the job, as the scheduler drains it", "who drains it, and why"},
    {kOutOfTouch, "reconnecting", In(kCause), In(kRound), "the connection to the rendezvous broke",
     "why"},
    {kBackInTouch, "reconnected", In(kCause), In(kRound), "it is there again",
     "for how long it was not"},
    {kFenced, "self_fenced", In(kCause), In(kRound),
     "out of touch for so long that the workers must end", "why"},
    {kEvicted, "evicted", In(kCause), In(kRound), "the rendezvous has given the node's place away",
     "why"},
    {kLost, "rendezvous_lost", In(kCause), In(kRound), "the rendezvous is gone", "why"},
    {kVerdict, "verdict", In(kCause), In(kRound), "the job has ended", "its verdict, a sentence"},
};

// Rows are found by their place.
constexpr bool InOrder() {
  std::size_t at = 0;
  for (const EventFieldRow& row : kFields) {
    if (static_cast<std::size_t>(row.field) != at++) return false;
  }
  at = 0;
  for (const EventRow& row : kEvents) {
    if (static_cast<std::size_t>(row.kind) != at++) return false;
  }
  return at == static_cast<std::size_t>(kVerdict) + 1;
}
static_assert(InOrder());

}  // namespace

absl::Span<const EventFieldRow> EventFieldTable() {
  return kFields;
}

absl::Span<const EventRow> EventTable() {
  return kEvents;
}

const EventRow* FindEvent(absl::string_view name) {
  for (const EventRow& row : kEvents) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace muster::launcher
