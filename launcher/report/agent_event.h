// What happens to one node of a run, as its agent sees it: for the event log and the timeline.
#pragma once

#include <optional>
#include <string>

#include "rendezvous/core/types.h"

namespace muster::launcher {

enum class AgentEventKind {
  kLogOpened,        // the event log begins; only EventLog itself says so
  kJoining,          // asks for a place in the next round
  kWaiting,          // hears why there is no place yet; `cause` says why
  kAssigned,         // has a place; `cause` is the reason for its rank
  kWorkersStarted,   // every worker runs
  kFirstBeat,        // a worker has said for the first time that it makes progress; `rank`
  kWorkerStopped,    // SIGSTOP or the like; `rank`, `pid`, and `cause` is what stopped it
  kWorkerContinued,  // it continues; `rank`, `pid`
  kOutputLost,       // a log file does not take all; `rank`, and `cause` is which and why
  kStraggler,        // a rank of any node is slower than the others; `cause` is a sentence about
                     // it, `rank` is -1 if that is about several
  kStragglerOver,    // it no longer is; as for kStraggler
  kHang,             // a worker gives no sign of life; `rank`, and `cause` is for how long
  kOperations,       // where the workers are; `cause` is a sentence of worker::ExplainFlights
  kEvidence,         // what it was doing was written down; `rank`, and `cause` is the file
  kUnfit,            // the health check failed; `cause` says how
  kWorkerFailed,     // the first failure here; `rank`, `pid`, and `cause` says how it ended
  kToldToStop,       // the round is over; `cause` says why
  kStopping,         // the workers are being ended; `cause` is the signal they get
  kWorkersGone,      // none is left; `cause` is "succeeded", "failed" or "stopped"
  kSignal,           // a signal to the agent itself; `cause` is its name
  kDrained,          // the scheduler drains the node, which leaves; `cause` says so
  kOutOfTouch,       // the connection to the rendezvous broke; `cause` says why
  kBackInTouch,      // it is there again; `cause` is for how long it was not
  kFenced,           // out of touch for so long that the workers must end; `cause` says why
  kEvicted,          // the rendezvous has given this node's place away; `cause` says why
  kLost,             // the rendezvous is gone; `cause` says why
  kVerdict,          // the job has ended; `cause` is its sentence
};

// The place of a node in a round.
struct EventPlace {
  rendezvous::Incarnation incarnation = 0;  // which life of the job
  int node_rank = 0;                        // this node's rank among `nodes`
  int nodes = 1;
  int first_rank = 0;  // the global rank of its first worker, of `world_size`
  int world_size = 1;
};

struct AgentEvent {
  AgentEventKind kind = AgentEventKind::kJoining;
  // The round it is about; kNoRound when it is about none.
  rendezvous::RoundNumber round = rendezvous::kNoRound;
  // The worker it is about: its global rank, and its pid here; -1 and 0 when it is about none.
  int rank = -1;
  int pid = 0;
  std::string cause;
  // Of kAssigned alone.
  std::optional<EventPlace> place = std::nullopt;
};

}  // namespace muster::launcher
