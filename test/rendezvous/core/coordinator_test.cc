// Runs the transcripts test/rendezvous/testdata/coordinator_*.txt. Agents are called by node name;
// the n-th letter of the alphabet is agent n, unless as=LETTER says that it is another connection.
// Their commands:
//
//   join NODE [job=J] nodes=MIN:MAX [lease=MS] [restarts=N] [last_call=MS] [join_timeout=MS]
//        [slots=N] [exact=1 hint=N] [serves=1 also=ADDRESS/ADDRESS] [session=S] [after=ROUND]
//        [ran=1 (workers in the life that this node started last)] [unfit=WHY] [later=1]
//        [window=MS] [delay=MS] [longest_delay=MS] [no_progress=N] ...
//   resume NODE session=S
//   beat NODE [number=N] [heard=N]      a keep-alive
//   told NODE round=N timed=N [step=N] [ago=MS] RANK:PHASE:MS,PHASE:MS ...   a keep-alive with what
//        the node's ranks (0 is its first) have told; phases that begin with "wait" are waiting
//   troubled NODE round=N [ago=MS] [RANK:KIND ...]   a keep-alive with all that is wrong with ranks
//   started NODE round=N [of=NODE] of=: of the job that this other node attends
//   succeeded NODE round=N         its workers have all exited with 0
//   failed NODE round=N rank=R code=C | signal=S [final=1] [before_first_beat=1]
//   ask NODE WHY round=N           it wants to leave
//   leaving NODE WHY · leave NODE [why=WHY] · lost NODE WHY (its connection is gone)
//   dead NODE session=S (its guard says so)
//   drain WHY · close WHY · tick
//   next_deadline                  nothing · @MS or none
//   describe [J]                   the job's snapshot
//   limits [jobs=N] [nodes=N] [ended=N] [names=1]     a new Coordinator
//   restart [serves=0]             the same one, killed and started again
//   serve                          after serves=0: agents can reach it from now on
//
// Every command is followed by the directives it brought about, "a <- ...", and, after "log" was
// given, by the transitions, "log ...".
#include "rendezvous/core/coordinator.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "test/rendezvous/support/directive_text.h"
#include "test/rendezvous/support/transcript.h"
#include "test/rendezvous/support/words.h"

namespace muster::rendezvous {
namespace {

using Lines = std::vector<std::string>;

AgentId AgentOf(const std::string& node) {
  return static_cast<AgentId>(node[0] - 'a' + 1);
}
std::string NodeOf(AgentId agent) {
  return std::string(1, static_cast<char>('a' + agent - 1));
}

std::vector<RankProgress> RanksFrom(const Words& words) {
  std::vector<RankProgress> ranks;
  for (std::size_t i = 1; i < words.size(); ++i) {
    RankProgress rank{.ago = words.GetMs("ago", Duration::zero()),
                      .timed_steps = words.Get("timed", 0)};
    if (words.Has("step")) rank.step = words.Get("step", 0);
    const std::vector<std::string> parts = absl::StrSplit(words.At(i), absl::MaxSplits(':', 1));
    EXPECT_TRUE(absl::SimpleAtoi(parts.front(), &rank.local_rank));
    for (const absl::string_view phase : absl::StrSplit(parts.back(), ',')) {
      const std::pair<std::string, std::string> named = absl::StrSplit(phase, ':');
      int ms = 0;
      EXPECT_TRUE(absl::SimpleAtoi(named.second, &ms)) << phase;
      rank.phases.push_back({named.first, ms / 1000.0, absl::StartsWith(named.first, "wait")});
    }
    ranks.push_back(std::move(rank));
  }
  return ranks;
}

std::vector<RankAlert> RankAlertsFrom(const Words& words) {
  static const std::map<std::string, RankAlertKind> kKinds = {
      {"stopped", RankAlertKind::kStopped},
      {"silent", RankAlertKind::kSilent},
      {"output_lost", RankAlertKind::kOutputLost}};
  std::vector<RankAlert> alerts;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(words.At(i), ':');
    RankAlert alert{.kind = kKinds.at(parts.second),
                    .what = "was seen " + parts.second,
                    .ago = words.GetMs("ago", Duration::zero())};
    EXPECT_TRUE(absl::SimpleAtoi(parts.first, &alert.local_rank));
    alerts.push_back(std::move(alert));
  }
  return alerts;
}

class Player {
 public:
  Lines operator()(TimePoint now, const Lines& all_words) {
    const Words words(all_words);
    Lines lines = Do(now, words);
    const Outbox outbox = coordinator_->TakeOutbox();
    for (const Outgoing& outgoing : outbox.directives) {
      Remember(outgoing);
      lines.push_back(
          absl::StrCat(NodeOf(outgoing.to), " <- ", DirectiveText(outgoing.directive())));
    }
    for (const Transition& transition : outbox.transitions) {
      if (!logging_) continue;
      lines.push_back(absl::StrCat("log ", transition.run_id, " ", transition.round, " ",
                                   transition.node.empty() ? "-" : transition.node, " ",
                                   transition.text));
    }
    remembered_.insert(outbox.changed_jobs.begin(), outbox.changed_jobs.end());
    for (const std::string& run_id : outbox.forgotten_jobs) {
      lines.push_back(absl::StrCat("forgotten ", run_id));
    }
    return lines;
  }

 private:
  Lines Do(TimePoint now, const Words& words) {
    const std::string& command = words.command();
    if (command == "limits") {
      coordinator_ = std::make_unique<Coordinator>(
          Coordinator::Options{.max_jobs = words.Get("jobs", 1024),
                               .max_nodes = words.Get("nodes", 1024),
                               .max_ended_jobs = static_cast<std::size_t>(words.Get("ended", 1024)),
                               .names_required = words.Has("names")});
      return {};
    }
    if (command == "log") {
      logging_ = true;
      return {};
    }
    if (command == "tick") {
      coordinator_->Tick(now);
      return {};
    }
    if (command == "next_deadline") return {DeadlineText(coordinator_->NextDeadline())};
    if (command == "drain") {
      coordinator_->Drain(words.At(0));
      return {};
    }
    if (command == "close") {
      coordinator_->Close(words.At(0), now);
      return {};
    }
    if (command == "restart") {
      Restart(now);
      if (words.Get("serves", 1) != 0) coordinator_->BeginToServe(now);
      return {};
    }
    if (command == "serve") {
      coordinator_->BeginToServe(now);
      return {};
    }
    if (command == "describe") return Described(words.At(0), now);
    return DoAgent(now, words);
  }

  Lines DoAgent(TimePoint now, const Words& words) {
    const std::string& command = words.command();
    const std::string node = words.At(0);
    const AgentId agent = AgentOf(words.Get("as", node));
    const RoundId round{lives_[words.Get("of", node)], words.Get("round", 0)};
    if (command == "join") {
      JoinRequest request{words.Get("job", "j"), SettingsFrom(words), NodeFrom(node, words)};
      request.session = words.Get("session", "");
      request.unfit = words.Get("unfit", "");
      request.connection = words.Get("connection", 0);
      if (words.Has("ran")) request.ran_in = started_.at(node).incarnation;
      request.after = words.Get("after", started_.contains(node) ? started_.at(node).number : -1);
      coordinator_->Hear(agent, request, now);
    } else if (command == "resume") {
      const Resume resume{words.Get("session", ""),
                          static_cast<std::uint64_t>(words.Get("connection", 0))};
      coordinator_->Hear(agent, resume, now);
    } else if (command == "beat") {
      coordinator_->Hear(agent, KeepAlive{words.Get("number", 1), words.Get("heard", 0)}, now);
    } else if (command == "told") {
      coordinator_->Hear(agent, KeepAlive{.number = 1, .progress = {round, RanksFrom(words)}}, now);
    } else if (command == "troubled") {
      const Progress progress{.round = round, .alerts = RankAlertsFrom(words)};
      coordinator_->Hear(agent, KeepAlive{.number = 1, .progress = progress}, now);
    } else if (command == "started") {
      coordinator_->Hear(agent, WorkersStarted{round}, now);
    } else if (command == "succeeded") {
      coordinator_->Hear(agent, WorkersExited{round, {.succeeded = true}}, now);
    } else if (command == "failed") {
      const int signal = words.Get("signal", 0);
      const int code = words.Get("code", 1);
      const WorkerFailure failure{.rank = words.Get("rank", 0),
                                  .host = node,
                                  .exit_code = code,
                                  .signal = signal,
                                  .what = signal != 0
                                              ? absl::StrCat("was killed by signal ", signal)
                                              : absl::StrCat("exited with code ", code),
                                  .before_first_beat = words.Has("before_first_beat"),
                                  .final = words.Has("final")};
      coordinator_->Hear(agent, WorkersExited{round, {.succeeded = false, .failure = failure}},
                         now);
    } else if (command == "leaving") {
      coordinator_->Hear(agent, Leaving{words.At(1)}, now);
    } else if (command == "ask") {
      coordinator_->Hear(agent, AskToLeave{round, words.At(1)}, now);
    } else if (command == "leave") {
      coordinator_->Hear(agent, Goodbye{words.Has("why") ? words.Get("why", "") : ""}, now);
    } else if (command == "lost") {
      coordinator_->Disconnected(agent, words.At(1), now);
    } else if (command == "dead") {
      coordinator_->AgentDied(words.Get("session", ""), now);
    } else {
      return {"no such command: " + command};
    }
    return {};
  }

  // Kills the daemon, and starts it again from its journal.
  void Restart(TimePoint now) {
    auto restarted = std::make_shared<Coordinator>(Coordinator::Options{.durable = true});
    for (const std::string& run_id : remembered_) {
      const std::optional<JobRecord> record = coordinator_->Record(run_id, now);
      if (!record) continue;
      const JobRecord& written = *record;
      restarted->Restore(written, now);
      JobRecord restored = *restarted->Record(run_id, now);
      // A round that is held for a lost node is held longer, and so is the name of a job.
      if (written.round.held_for) {
        EXPECT_GE(restored.round.held_for, written.round.held_for);
        EXPECT_GE(restored.round.gives_up_in, written.round.gives_up_in);
        restored.round.held_for = written.round.held_for;
        restored.round.gives_up_in = written.round.gives_up_in;
      }
      // No lease is longer than an hour.
      EXPECT_LE(written.workers_gone_in, std::chrono::hours(1)) << run_id;
      EXPECT_GE(restored.workers_gone_in, written.workers_gone_in);
      restored.workers_gone_in = written.workers_gone_in;
      EXPECT_EQ(restored, written);
    }
    coordinator_ = std::move(restarted);
  }

  // Like agents: the life of the job they attend, and the workers they have started.
  void Remember(const Outgoing& outgoing) {
    if (const auto* welcome = std::get_if<Welcome>(&outgoing.directive())) {
      lives_[NodeOf(outgoing.to)] = welcome->incarnation;
      started_.erase(NodeOf(outgoing.to));
    } else if (const auto* assignment = std::get_if<Assignment>(&outgoing.directive())) {
      started_[NodeOf(outgoing.to)] = assignment->id();
    }
  }

  Lines Described(const std::string& run_id, TimePoint now) {
    const std::optional<JobSnapshot> job = coordinator_->Describe(run_id, now);
    if (!job) return {"no such job"};
    return SnapshotText(*job);
  }

  std::shared_ptr<Coordinator> coordinator_ = std::make_shared<Coordinator>();
  bool logging_ = false;
  // Jobs that were reported as changed.
  std::set<std::string> remembered_;
  std::map<std::string, Incarnation> lives_;
  std::map<std::string, RoundId> started_;
};

JoinRequest OneNode(const std::string& node) {
  return {.run_id = "j",
          .settings = {.lease = std::chrono::seconds(3)},
          .node = {.node_id = node, .host = node, .address = "10.0.0.1", .master_port = 40001},
          .session = "session of " + node};
}

// The first answer to an agent that speaks these versions, from a daemon that speaks those.
Directive AnswerTo(SpokenVersions agent, SpokenVersions daemon) {
  Coordinator coordinator(Coordinator::Options{.speaks = daemon});
  JoinRequest request = OneNode("a");
  request.speaks = agent;
  coordinator.Hear(1, request, TimePoint{});
  return coordinator.TakeOutbox().directives.at(0).directive();
}

TEST(CoordinatorVersionTest, NewestVersionThatBothSpeakIsUsed) {
  EXPECT_EQ(std::get<Welcome>(AnswerTo({1, 2}, {1, 2})).version, 2);
  EXPECT_EQ(std::get<Welcome>(AnswerTo(kUntold, {1, 2})).version, 1);
  EXPECT_EQ(std::get<Welcome>(AnswerTo({2, 3}, {1, 2})).version, 2);
  EXPECT_EQ(std::get<Welcome>(AnswerTo({1, 2}, {2, 4})).version, 2);
}

TEST(CoordinatorVersionTest, WhereThereIsNoneItIsSaidWhoIsToBeBroughtUpToDate) {
  EXPECT_EQ(
      std::get<Refused>(AnswerTo({1, 2}, {3, 4})).sentence,
      "this node's Muster speaks versions 1 to 2 of the rendezvous protocol, and the daemon's "
      "versions 3 to 4: install a later Muster on this node");
  EXPECT_EQ(std::get<Refused>(AnswerTo({3, 3}, {1, 2})).sentence,
            "this node's Muster speaks version 3 of the rendezvous protocol, and the daemon's "
            "versions 1 to 2: install a later Muster where the daemon runs");
}

// "A daemon was upgraded under a job": the agent comes back to one that no longer speaks its
// version.
TEST(CoordinatorVersionTest, WhoComesBackIsAskedAgain) {
  Coordinator coordinator(Coordinator::Options{.speaks = {2, 3}});
  JoinRequest request = OneNode("a");
  request.speaks = {1, 2};
  coordinator.Hear(1, request, TimePoint{});
  EXPECT_EQ(std::get<Welcome>(coordinator.TakeOutbox().directives.at(0).directive()).version, 2);
  coordinator.Hear(2, Resume{OneNode("a").session, 1, {2, 3}}, TimePoint{});
  const Outbox back = coordinator.TakeOutbox();
  const auto welcome = std::find_if(
      back.directives.begin(), back.directives.end(),
      [](const Outgoing& told) { return std::holds_alternative<Welcome>(told.directive()); });
  ASSERT_NE(welcome, back.directives.end());
  EXPECT_EQ(std::get<Welcome>(welcome->directive()).version, 3);
  coordinator.Hear(3, Resume{OneNode("a").session, 2, kUntold}, TimePoint{});
  EXPECT_TRUE(
      std::holds_alternative<Refused>(coordinator.TakeOutbox().directives.at(0).directive()));
}

class CoordinatorTranscript : public testing::TestWithParam<std::string> {};

TEST_P(CoordinatorTranscript, IsTrue) {
  ExpectTranscript(GetParam(), Player());
}

INSTANTIATE_TEST_SUITE_P(Testdata, CoordinatorTranscript,
                         testing::ValuesIn(TranscriptPaths("coordinator_")),
                         [](const auto& info) { return TranscriptName(info.param); });

// A job had ended, the daemon was restarted, and the next job of that name was to start in
// 3153600003 s.
TEST(CoordinatorTest, NameOfAJobThatLostNobodyIsFreeAfterARestart) {
  Coordinator before(Coordinator::Options{.durable = true});
  const TimePoint late = TimePoint{} + std::chrono::hours(1);
  before.Hear(1, OneNode("a"), late);
  before.Hear(1, Goodbye{}, late);
  const std::optional<JobRecord> record = before.Record("j", late);
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->workers_gone_in, Duration::zero());

  // The clock restarts with the machine.
  Coordinator after(Coordinator::Options{.durable = true});
  const TimePoint early = TimePoint{} + std::chrono::minutes(1);
  after.Restore(*record, early);
  after.Hear(1, OneNode("b"), early);
  EXPECT_EQ(after.Describe("j", early)->state, JobState::kRunning);
}

// The end of a job of thousands of nodes would send hundreds of megabytes of one worker's stderr.
TEST(CoordinatorTest, OnlySomeOfManyNodesAreToldWhatTheFailedWorkerWrote) {
  constexpr int kNodes = 100;
  Coordinator coordinator;
  for (int i = 0; i < kNodes; ++i) {
    JoinRequest request = OneNode(absl::StrCat("n", i));
    request.settings.min_nodes = request.settings.max_nodes = kNodes;
    request.node.rank_hint = i;
    coordinator.Hear(i + 1, request, TimePoint{});
  }
  std::map<AgentId, int> rank_of;
  RoundId round;
  for (const Outgoing& outgoing : coordinator.TakeOutbox().directives) {
    if (const auto* const assignment = std::get_if<Assignment>(&outgoing.directive())) {
      rank_of[outgoing.to] = assignment->group_rank;
      round = assignment->id();
    }
  }
  ASSERT_EQ(rank_of.size(), static_cast<std::size_t>(kNodes));
  const WorkerFailure failure{
      .rank = 90, .node_id = "n90", .stderr_tail = std::string(8000, 'x'), .final = true};
  coordinator.Hear(91, WorkersExited{round, {.succeeded = false, .failure = failure}}, TimePoint{});
  int told = 0;
  for (const Outgoing& outgoing : coordinator.TakeOutbox().directives) {
    const auto* const verdict = std::get_if<Verdict>(&outgoing.directive());
    if (verdict == nullptr) continue;
    ++told;
    EXPECT_EQ(verdict->root_cause->rank, 90);
    const bool all = rank_of[outgoing.to] < 64 || outgoing.to == 91;
    EXPECT_EQ(verdict->root_cause->stderr_tail.size(), all ? 8000u : 0u) << outgoing.to;
  }
  EXPECT_EQ(told, kNodes);
  EXPECT_EQ(coordinator.Describe("j", TimePoint{})->failure->stderr_tail.size(), 8000u);
}

}  // namespace
}  // namespace muster::rendezvous
