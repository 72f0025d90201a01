#include "test/rendezvous/simulation/event.h"

#include "absl/strings/str_cat.h"

namespace muster::rendezvous {
namespace {

std::string JoinText(const JoinRequest& request) {
  return absl::StrCat(" join ", request.run_id, " as ", request.node.node_id,
                      " nodes=", request.settings.min_nodes, ":", request.settings.max_nodes,
                      " slots=", request.node.slots);
}

}  // namespace

std::string EventText(const Event& event) {
  switch (event.kind) {
    case EventKind::kJoin:
      return absl::StrCat("a", event.agent, JoinText(*event.request));
    case EventKind::kKeepAlive:
      return absl::StrCat("a", event.agent, " beat");
    case EventKind::kStarted:
      return absl::StrCat("a", event.agent, " started round ", event.round);
    case EventKind::kSucceeded:
      return absl::StrCat("a", event.agent, " succeeded round ", event.round);
    case EventKind::kFailed:
      return absl::StrCat("a", event.agent, " failed round ", event.round, " rank ", event.rank);
    case EventKind::kLeaving:
      return absl::StrCat("a", event.agent, " leaving");
    case EventKind::kLeave:
      return absl::StrCat("a", event.agent, " leave");
    case EventKind::kLost:
      return absl::StrCat("a", event.agent, " lost");
    case EventKind::kTick:
      return event.late == Duration::zero()
                 ? "tick"
                 : absl::StrCat("tick after a halt, late by ",
                                event.late / std::chrono::milliseconds(1), " ms");
    case EventKind::kClose:
      return "close";
    case EventKind::kDrain:
      return "drain";
  }
  return "?";
}

}  // namespace muster::rendezvous
