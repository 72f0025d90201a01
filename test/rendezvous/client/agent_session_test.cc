// Runs the transcripts test/rendezvous/testdata/attendance_*.txt. Their commands:
//
//   session [connect=MS] [reconnect=MS] [trust] [tells] [places=N]
//                        a new one; timeouts of 60 s and 600 s unless given; trust: refusals count;
//                        tells: its ranks tell of their steps; places: where the daemon may be
//   join NODE [after=N]
//   started N | exited N | leaving REASON | ask REASON
//   leave [REASON]
//   welcome [lease=MS] [beat=MS] [durable] [secret=TEXT] [version=N]
//   heard N | waiting | start N | stop N | verdict | notice | evicted | refused | stay | go
//                        directives; over=N: of another connection than the last
//   ended CAUSE [refused] [unresolved] [foreign] [over=N]
//   paused SENT_MS | gone
//                        the answer to the last probe; session=TOKEN: to another one
//   tick
//   next                 @MS or none
//
// The outcomes are the actions, in their order. Sessions are s1, s2 and so on; pauses are always
// the same, by the seed.
#include "rendezvous/client/agent_session.h"
#include "base/text.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "test/rendezvous/support/directive_text.h"
#include "test/rendezvous/support/transcript.h"
#include "test/rendezvous/support/words.h"

namespace muster::rendezvous {
namespace {

using Lines = std::vector<std::string>;
using std::chrono::milliseconds;

constexpr Incarnation kLife = 7;

// What ranks have told since the last time, and what they have told at all.
const Progress kNews{.ranks = {{.local_rank = 1}}};
const Progress kAll{.ranks = {{.local_rank = 0}, {.local_rank = 1}}};

struct EventText {
  std::string operator()(const JoinRequest& join) const {
    return absl::StrCat("join of ", join.node.host, ", ", join.session, ", connection ",
                        join.connection, ", after ", join.after);
  }
  std::string operator()(const Resume& resume) const {
    return absl::StrCat("resume ", resume.session, ", connection ", resume.connection);
  }
  std::string operator()(const KeepAlive& beat) const {
    return absl::StrCat("beat ", beat.number,
                        beat.heard > 0 ? absl::StrCat(", heard ", beat.heard) : "",
                        beat.progress == kNews  ? ", tells news"
                        : beat.progress == kAll ? ", tells all"
                                                : "");
  }
  std::string operator()(const WorkersStarted& started) const {
    return absl::StrCat("started ", started.round.number);
  }
  std::string operator()(const WorkersExited& exited) const {
    return absl::StrCat("exited ", exited.round.number);
  }
  std::string operator()(const Leaving& leaving) const {
    return absl::StrCat("leaving: ", leaving.reason);
  }
  std::string operator()(const AskToLeave& asked) const {
    return absl::StrCat("ask to leave round ", asked.round.number, ": ", asked.reason);
  }
  std::string operator()(const Goodbye& goodbye) const {
    return goodbye.reason.empty() ? "goodbye" : absl::StrCat("goodbye: ", goodbye.reason);
  }
};

struct ActionText {
  std::string operator()(const AgentSession::Connect& connect) const {
    return absl::StrCat("connect ", connect.connection,
                        connect.place > 0 ? absl::StrCat(" at place ", connect.place) : "",
                        connect.to_known_peer ? " to where it was" : "");
  }
  std::string operator()(const AgentSession::Send& send) const {
    return absl::StrCat("send ", std::visit(EventText{}, send.event));
  }
  std::string operator()(const AgentSession::FinishSending&) const { return "finish sending"; }
  std::string operator()(const AgentSession::Abandon&) const { return "abandon"; }
  std::string operator()(const AgentSession::LivenessProbe& probe) const {
    return absl::StrCat("knock for ", probe.session, " by ", probe.secret);
  }
  std::string operator()(const AgentSession::Tell& tell) const {
    return absl::StrCat("tell ", DirectiveText(tell.directive));
  }
  std::string operator()(const AgentSession::Trouble& trouble) const {
    return absl::StrCat("trouble: ", trouble.sentence);
  }
  std::string operator()(const AgentSession::OutOfTouch& out) const {
    return absl::StrCat("out of touch: ", out.cause);
  }
  std::string operator()(const AgentSession::BackInTouch& back) const {
    return absl::StrCat("back in touch after ", base::Seconds(back.outage));
  }
  std::string operator()(const AgentSession::Deadline& deadline) const {
    return absl::StrCat("deadline ", DeadlineText(deadline.time));
  }
  std::string operator()(const AgentSession::Fenced& fenced) const {
    return absl::StrCat("fenced: ", fenced.why);
  }
  std::string operator()(const AgentSession::Lost& lost) const {
    return absl::StrCat("lost: ", lost.status.message());
  }
  std::string operator()(const AgentSession::Left&) const { return "left"; }
};

class Player {
 public:
  Lines operator()(TimePoint now, const Lines& all_words) {
    const Words words(all_words);
    const std::string& command = words.command();
    if (command == "attendance") {
      Begin(words);
    } else if (command == "next") {
      return {DeadlineText(agent_session_->NextDeadline())};
    } else if (command == "tick") {
      agent_session_->Tick(now);
    } else if (!Agent(words, now) && !Connection(words, now) && !Answer(words, now)) {
      return {"no such command: " + command};
    }
    Lines lines;
    while (const auto action = agent_session_->NextAction()) {
      if (const auto* connect = std::get_if<AgentSession::Connect>(&*action)) {
        connection_ = static_cast<int>(connect->connection);
      }
      lines.push_back(std::visit(ActionText{}, *action));
    }
    return lines;
  }

 private:
  static int Number(const Words& words) {
    int number = 0;
    EXPECT_TRUE(absl::SimpleAtoi(words.At(0), &number)) << words.command();
    return number;
  }
  // A word without a value, in any place.
  static bool Says(const Words& words, const std::string& word) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words.At(i) == word) return true;
    }
    return false;
  }

  void Begin(const Words& words) {
    auto sessions = std::make_shared<int>(0);
    std::function<Progress(bool)> progress;
    if (Says(words, "tells")) progress = [](bool all) { return all ? kAll : kNews; };
    agent_session_ = std::make_shared<AgentSession>(AgentSession::Options{
        .where = "host:29400",
        .connect_timeout = words.GetMs("connect", milliseconds(60'000)),
        .reconnect_timeout = words.GetMs("reconnect", milliseconds(600'000)),
        .trust_refusals = Says(words, "trust"),
        .places = static_cast<int>(words.GetMs("places", milliseconds(1)) / milliseconds(1)),
        .new_session = [sessions] { return absl::StrCat("s", ++*sessions); },
        .progress = std::move(progress),
        .seed = 1});
  }

  bool Agent(const Words& words, TimePoint now) {
    const std::string& command = words.command();
    if (command == "join") {
      JoinRequest request{.run_id = "job", .node = NodeFrom(words.At(0), words)};
      request.after = words.Get("after", -1);
      agent_session_->Join(request, now);
    } else if (command == "started") {
      agent_session_->Say(WorkersStarted{{kLife, Number(words)}});
    } else if (command == "exited") {
      agent_session_->Say(WorkersExited{{kLife, Number(words)}, {.succeeded = true}});
    } else if (command == "leaving") {
      agent_session_->Say(Leaving{words.At(0)});
    } else if (command == "ask") {
      agent_session_->Say(AskToLeave{{kLife, 0}, words.At(0)});
    } else if (command == "leave") {
      agent_session_->Leave(words.size() > 0 ? words.At(0) : "", now);
    } else {
      return false;
    }
    return true;
  }

  bool Connection(const Words& words, TimePoint now) {
    const auto over = static_cast<std::uint64_t>(words.Get("over", connection_));
    if (words.command() == "ended") {
      using Kind = ConnectionError::Kind;
      Kind kind = Kind::kBroken;
      if (Says(words, "refused")) kind = Kind::kRefused;
      if (Says(words, "unresolved")) kind = Kind::kUnresolved;
      if (Says(words, "foreign")) kind = Kind::kForeign;
      agent_session_->OnConnectionEnded(over, {.cause = words.At(0), .kind = kind}, now);
      return true;
    }
    const std::optional<Directive> directive = DirectiveFrom(words);
    if (directive) agent_session_->OnDirective(over, *directive, now);
    return directive.has_value();
  }

  std::optional<Directive> DirectiveFrom(const Words& words) {
    const std::string& command = words.command();
    if (command == "welcome") {
      return Welcome{.keep_alive = words.GetMs("beat", {}),
                     .lease = words.GetMs("lease", {}),
                     .incarnation = kLife,
                     .durable = Says(words, "durable"),
                     .knock_secret = words.Get("secret", ""),
                     .version = words.Get("version", 1)};
    }
    if (command == "heard") return Heard{Number(words)};
    if (command == "waiting") return Waiting{.round = 0, .sentence = "1 of 2 nodes is here"};
    if (command == "start") {
      return Assignment{.incarnation = kLife,
                        .round = Number(words),
                        .master_addr = "10.0.0.1",
                        .master_port = 40'001,
                        .rank_reason = "by order"};
    }
    if (command == "stop") {
      return Stop{.round = Number(words), .reason = "another failed", .incarnation = kLife};
    }
    if (command == "verdict") return Verdict{.sentence = "job 'job' succeeded"};
    if (command == "notice") return Notice{"something to know"};
    if (command == "evicted") return Evicted{"it was silent for its lease"};
    if (command == "stay") return LeaveAnswer{.why_not = "the job needs it"};
    if (command == "go") return LeaveAnswer{.may_leave = true};
    if (command == "refused") return Refused{"the job wants another number of nodes"};
    return std::nullopt;
  }

  bool Answer(const Words& words, TimePoint now) {
    const SessionToken session = words.Get("session", agent_session_->session());
    if (words.command() == "paused") {
      agent_session_->OnPaused(session, TimePoint(milliseconds(Number(words))));
    } else if (words.command() == "gone") {
      agent_session_->OnGone(session, now);
    } else {
      return false;
    }
    return true;
  }

  std::shared_ptr<AgentSession> agent_session_;
  int connection_ = 0;
};

class AgentSessionTranscript : public testing::TestWithParam<std::string> {};

TEST_P(AgentSessionTranscript, IsTrue) {
  ExpectTranscript(GetParam(), Player());
}

INSTANTIATE_TEST_SUITE_P(Testdata, AgentSessionTranscript,
                         testing::ValuesIn(TranscriptPaths("attendance_")),
                         [](const auto& info) { return TranscriptName(info.param); });

// What a later version of the request brings must reach the daemon as the agent said it.
TEST(AgentSessionTest, OnlySessionAndConnectionOfAJoinAreFilledIn) {
  AgentSession agent_session({.new_session = [] { return "s1"; }});
  JoinRequest request{.run_id = "job",
                      .settings = {.min_nodes = 2, .max_nodes = 3},
                      .session = "another",
                      .connection = 9,
                      .after = 4,
                      .unfit = "its health check exited with code 1"};
  agent_session.Join(request, TimePoint{});
  agent_session.NextAction();
  const auto sent = std::get<AgentSession::Send>(*agent_session.NextAction());
  request.session = "s1";
  request.connection = 1;
  EXPECT_EQ(std::get<JoinRequest>(sent.event), request);
}

// A daemon of before versions were told cannot refuse one that needs a later one.
TEST(AgentSessionTest, DaemonThatIsTooOldIsLeftInOneSentence) {
  AgentSession agent_session({.speaks = {3, 4}, .new_session = [] { return "s1"; }});
  agent_session.Join({}, TimePoint{});
  while (agent_session.NextAction()) {
  }
  agent_session.OnDirective(1, Welcome{.lease = std::chrono::seconds(3)}, TimePoint{});
  std::string told;
  while (const auto action = agent_session.NextAction()) {
    if (const auto* tell = std::get_if<AgentSession::Tell>(&*action)) {
      told += DirectiveText(tell->directive);
    }
  }
  EXPECT_EQ(
      told,
      "refused: this node's Muster speaks versions 3 to 4 of the rendezvous protocol, and the "
      "daemon's version 1: install a later Muster where the daemon runs");
}

// The client may be told to leave by its listener, in the middle of what that is told.
TEST(AgentSessionTest, AfterLeaveTheListenerIsToldNothingOfWhatWasBefore) {
  AgentSession agent_session({.new_session = [] { return "s1"; }});
  agent_session.Join({}, TimePoint{});
  while (agent_session.NextAction()) {
  }
  agent_session.OnDirective(1, Welcome{.lease = std::chrono::seconds(3)}, TimePoint{});
  agent_session.Leave("", TimePoint{});
  EXPECT_TRUE(std::holds_alternative<AgentSession::Send>(*agent_session.NextAction()));
  EXPECT_TRUE(std::holds_alternative<AgentSession::FinishSending>(*agent_session.NextAction()));
  EXPECT_FALSE(agent_session.NextAction());
  agent_session.OnConnectionEnded(1, {}, TimePoint{});
  EXPECT_TRUE(std::holds_alternative<AgentSession::Left>(*agent_session.NextAction()));
  EXPECT_FALSE(agent_session.NextAction());
}

// Two nodes that break off at the same moment do not come back at the same moment.
TEST(AgentSessionTest, PausesDifferByTheSeed) {
  const auto pause = [](std::uint32_t seed) {
    AgentSession agent_session({.new_session = [] { return "s1"; }, .seed = seed});
    agent_session.Join({}, TimePoint{});
    agent_session.OnConnectionEnded(1, {}, TimePoint{});
    return *agent_session.NextDeadline();
  };
  EXPECT_EQ(pause(1), pause(1));
  EXPECT_NE(pause(1), pause(2));
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    EXPECT_GE(pause(seed), TimePoint(milliseconds(25)));
    EXPECT_LE(pause(seed), TimePoint(milliseconds(50)));
  }
}

}  // namespace
}  // namespace muster::rendezvous
