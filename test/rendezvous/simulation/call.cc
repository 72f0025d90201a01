#include "test/rendezvous/simulation/call.h"

#include "absl/strings/str_cat.h"

namespace muster::rendezvous {
namespace {

std::string JoinText(const JoinRequest& request) {
  return absl::StrCat(" join ", request.run_id, " as ", request.node.node_id,
                      " nodes=", request.settings.min_nodes, ":", request.settings.max_nodes,
                      " slots=", request.node.slots);
}

}  // namespace

std::string CallText(const Call& event) {
  switch (event.kind) {
    case CallKind::kJoin:
      return absl::StrCat("a", event.agent, JoinText(*event.request));
    case CallKind::kKeepAlive:
      return absl::StrCat("a", event.agent, " beat");
    case CallKind::kStarted:
      return absl::StrCat("a", event.agent, " started round ", event.round);
    case CallKind::kSucceeded:
      return absl::StrCat("a", event.agent, " succeeded round ", event.round);
    case CallKind::kFailed:
      return absl::StrCat("a", event.agent, " failed round ", event.round, " rank ", event.rank);
    case CallKind::kLeaving:
      return absl::StrCat("a", event.agent, " leaving");
    case CallKind::kAskToLeave:
      return absl::StrCat("a", event.agent, " asks to leave round ", event.round);
    case CallKind::kLeave:
      return absl::StrCat("a", event.agent, " leave");
    case CallKind::kLost:
      return absl::StrCat("a", event.agent, " lost");
    case CallKind::kTick:
      return event.late == Duration::zero()
                 ? "tick"
                 : absl::StrCat("tick after a halt, late by ",
                                event.late / std::chrono::milliseconds(1), " ms");
    case CallKind::kClose:
      return "close";
    case CallKind::kDrain:
      return "drain";
  }
  return "?";
}

}  // namespace muster::rendezvous
