#include "test/launcher/run/agent_transcript.h"

#include <csignal>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text.h"

namespace muster::launcher {
namespace {

std::string Because(const std::string& reason) {
  return reason.empty() ? "" : absl::StrCat(" (", reason, ")");
}

struct ResultText {
  std::string operator()(const rendezvous::Verdict& verdict) const { return verdict.sentence; }
  std::string operator()(const RendezvousFailed& failed) const {
    return absl::StrCat("rendezvous: ", failed.status.message());
  }
  std::string operator()(const NodeFailed& failed) const {
    return absl::StrCat("node: ", failed.status.message());
  }
  std::string operator()(const Interrupted& interrupted) const {
    return "interrupted by " + base::SignalName(interrupted.signal);
  }
  std::string operator()(const LeftEarly& left) const { return "left: " + left.why; }
};

}  // namespace

std::string AgentTranscript::Result() const {
  return core_.result() ? std::visit(ResultText{}, *core_.result()) : "";
}

std::string AgentTranscript::Written() const {
  return absl::StrJoin(lines_, "; ");
}

void AgentTranscript::Join(rendezvous::RoundId after, const std::string& unfit) {
  lines_.push_back(absl::StrCat("join",
                                after.number < 0 ? "" : absl::StrCat(" after ", after.number),
                                unfit.empty() ? "" : absl::StrCat(" unfit: ", unfit)));
}

void AgentTranscript::Say(rendezvous::Event event) {
  if (const auto* started = std::get_if<rendezvous::WorkersStarted>(&event)) {
    lines_.push_back(absl::StrCat("report round ", started->round.number, " started"));
  } else if (const auto* exited = std::get_if<rendezvous::WorkersExited>(&event)) {
    lines_.push_back(absl::StrCat(
        "report round ", exited->round.number,
        exited->outcome.succeeded ? " succeeded" : " failed: " + exited->outcome.failure->what));
  } else if (const auto* leaving = std::get_if<rendezvous::Leaving>(&event)) {
    lines_.push_back("leaving" + Because(leaving->reason));
  } else if (const auto* ask = std::get_if<rendezvous::AskToLeave>(&event)) {
    lines_.push_back(absl::StrCat("ask to leave round ", ask->round.number, Because(ask->reason)));
  } else {
    lines_.emplace_back("says what it should not");
  }
}

void AgentTranscript::Leave(const std::string& reason) {
  lines_.push_back("goodbye" + Because(reason));
}

void AgentTranscript::StartWorkers(const rendezvous::Assignment& assignment) {
  lines_.push_back(absl::StrCat("start round ", assignment.round));
}

void AgentTranscript::StopWorkers(int signal) {
  lines_.push_back(signal == SIGKILL ? "kill"
                                     : absl::StrCat("stop with ", base::SignalName(signal)));
}

void AgentTranscript::Tell(Level level, const std::string& sentence) {
  if (shows_ == Shows::kActs || level == Level::kNotice) return;
  lines_.push_back(absl::StrCat("\"", sentence, "\""));
}

void AgentTranscript::Note(const AgentEvent& event) {
  last_event_ = event;
  if (shows_ == Shows::kActs) return;
  lines_.push_back(absl::StrCat("[", EventTable()[static_cast<std::size_t>(event.kind)].name,
                                event.cause.empty() ? "" : ": ", event.cause, "]"));
}

}  // namespace muster::launcher
