#include "launcher/replay/incidents.h"

#include "absl/strings/str_cat.h"

namespace muster::launcher {

using enum AgentEventKind;

bool EndsRound(AgentEventKind kind) {
  switch (kind) {
    case kHang:
    case kWorkerFailed:
    case kToldToStop:
    case kSignal:
    case kDrained:
    case kFenced:
    case kEvicted:
    case kLost:
    case kVerdict:
      return true;
    default:
      return false;
  }
}

bool IsIncident(AgentEventKind kind) {
  switch (kind) {
    case kWorkerStopped:
    case kWorkerContinued:
    case kOutputLost:
    case kStraggler:
    case kStragglerOver:
    case kOperations:
    case kEvidence:
    case kUnfit:
    case kOutOfTouch:
    case kBackInTouch:
      return true;
    default:
      return EndsRound(kind);
  }
}

std::string DescribeIncident(const LoggedEvent& event, const std::string& node) {
  const std::string of_rank = absl::StrCat("rank ", event.rank, " ");
  const std::string of_node = absl::StrCat("node ", node, " ");
  switch (event.kind) {
    case kHang:
    case kWorkerFailed:
    case kWorkerStopped:
    case kOutputLost:
      return absl::StrCat(of_rank, event.cause);
    case kWorkerContinued:
      return absl::StrCat(of_rank, "was continued");
    case kEvidence:
      return event.cause.empty() ? absl::StrCat(of_rank, "was examined")
                                 : absl::StrCat(of_rank, "was examined: ", event.cause);
    case kUnfit:
      return absl::StrCat(of_node, "is not fit: ", event.cause);
    case kSignal:
      return absl::StrCat(of_node, "received ", event.cause);
    case kDrained:
      return absl::StrCat(of_node, "leaves: ", event.cause);
    case kOutOfTouch:
      return absl::StrCat(of_node, "lost its connection: ", event.cause);
    case kBackInTouch:
      return absl::StrCat(of_node, "is connected again after ", event.cause);
    case kFenced:
      return absl::StrCat(of_node, "ended its workers itself: ", event.cause);
    case kEvicted:
      return absl::StrCat(of_node, "lost its place: ", event.cause);
    case kLost:
      return absl::StrCat(of_node, "lost the rendezvous: ", event.cause);
    default:
      return event.cause;
  }
}

}  // namespace muster::launcher
