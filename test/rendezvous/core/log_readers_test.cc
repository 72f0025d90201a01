// Log readers, and the agents that deliver to them, as a transcript: events go in, and the
// resulting actions are compared as text, such as "give 1: rank 0: hello".
#include "rendezvous/core/log_readers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rendezvous/core/daemon_core.h"
#include "test/rendezvous/support/directive_text.h"
#include "test/rendezvous/support/join_request.h"

namespace muster::rendezvous {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Texts = std::vector<std::string>;

struct ReaderWords {
  std::string operator()(const Outgoing& outgoing) const {
    return absl::StrCat("agent ", outgoing.to, ": ", DirectiveText(outgoing.directive()));
  }
  std::string operator()(const GiveLogPart& give) const {
    if (const auto* text = std::get_if<LogText>(&give.part)) {
      return absl::StrCat("give ", give.reader, ": rank ", text->rank, ": ", text->bytes);
    }
    if (const auto* round = std::get_if<LogRound>(&give.part)) {
      return absl::StrCat("give ", give.reader, ": round ", round->round,
                          round->reason.empty() ? "" : ": ", round->reason);
    }
    const auto& notice = std::get<LogNotice>(give.part);
    return absl::StrCat("give ", give.reader, ": ", notice.is_loss ? "lost: " : "",
                        notice.sentence);
  }
  std::string operator()(const EndLogReader& end) const {
    return absl::StrCat("end ", end.reader, ": ",
                        end.status.ok() ? "ok" : StatusCodeToString(end.status.code()),
                        end.status.ok() ? "" : ": ", end.status.message());
  }
  std::string operator()(const ReadLogDelivery& read) const {
    return absl::StrCat("read ", read.delivery);
  }
  std::string operator()(const EndLogDelivery& end) const {
    return absl::StrCat("cut ", end.delivery);
  }
};

// A job of two nodes with two ranks each, agents 1 and 2.
class LogReadersTest : public ::testing::Test {
 protected:
  explicit LogReadersTest(const LogReaders::Options& options = {}) : core_({}, options) {}

  void Join(AgentId agent, bool delivers = true, RoundNumber after = kNoRound) {
    JoinRequest request = RequestFor(static_cast<int>(agent), 2);
    request.settings.max_restarts = 3;
    request.settings.lease = Duration::zero();
    request.node.slots = 2;
    request.node.delivers_logs = delivers;
    request.after = after;
    core_.Hear(agent, request, now_);
  }
  void StartJob() {
    Join(1);
    Join(2);
    Take();
  }
  // Rank 1 fails in the current round `round`, and both nodes are back.
  void Restart(RoundNumber round) {
    core_.Hear(
        1,
        WorkersExited{{1, round},
                      {.failure = WorkerFailure{.rank = 1, .host = "host1", .what = "fell"}}},
        now_);
    Join(1, true, round);
    Join(2, true, round);
  }
  void Succeed(RoundNumber round) {
    for (const AgentId agent : {1, 2}) {
      core_.Hear(agent, WorkersExited{{1, round}, {.succeeded = true}}, now_);
    }
  }
  void Leave() {
    for (const AgentId agent : {1, 2}) core_.Hear(agent, Goodbye{}, now_);
  }

  void Open(LogReaderId id, LogRequest request) {
    if (request.run_id.empty()) request.run_id = "job";
    logs().Open(id, std::move(request), now_);
  }
  void Bring(LogDeliveryId id, const std::string& bytes, int rank = 0) {
    logs().Brought(id, LogText{.rank = rank, .bytes = bytes}, now_);
  }
  void End(LogDeliveryId id) { logs().Ended(id, absl::OkStatus(), now_); }
  void Tick(seconds passed) {
    now_ += passed;
    core_.Tick(now_);
  }

  LogReaders& logs() { return core_.logs(); }
  Texts Take() {
    while (core_.NextMessage()) {
    }
    Texts texts;
    while (const std::optional<LogAction> action = core_.NextLogAction()) {
      texts.push_back(std::visit(ReaderWords{}, *action));
    }
    return texts;
  }

  TimePoint now_{seconds(100)};
  DaemonCore core_;
};

const LogExtent kFollows{.follow = true};

TEST_F(LogReadersTest, NodesAreReadOneAfterTheOtherAndNoFasterThanTheReaderTakes) {
  StartJob();
  Open(1, {});
  EXPECT_THAT(Take(),
              ElementsAre("give 1: round 0", "agent 1: bring the log of round 0, ranks 0-1, to 1"));
  EXPECT_TRUE(logs().OpenDelivery(1));
  EXPECT_THAT(Take(), ElementsAre("read 1"));
  Bring(1, "a");
  EXPECT_THAT(Take(), IsEmpty()) << "the reader has not taken what came before";
  logs().Ready(1, now_);
  EXPECT_THAT(Take(), ElementsAre("give 1: rank 0: a", "read 1"));
  Bring(1, "b");
  logs().Ready(1, now_);
  EXPECT_THAT(Take(), ElementsAre("give 1: rank 0: b", "read 1"));
  End(1);
  EXPECT_THAT(Take(), ElementsAre("agent 2: bring the log of round 0, ranks 2-3, to 2"));
  logs().OpenDelivery(2);
  End(2);
  EXPECT_THAT(Take(), ElementsAre("read 2")) << "the reader may not have it all yet";
  logs().Ready(1, now_);
  EXPECT_THAT(Take(), ElementsAre("end 1: ok"));
  EXPECT_EQ(logs().readers() + logs().deliveries(), 0u);
}

TEST_F(LogReadersTest, OnlyNodesThatHaveTheRanksAreAsked) {
  StartJob();
  Open(1, {.ranks = {{1, 2}}, .extent = kFollows});
  EXPECT_THAT(Take(),
              ElementsAre("give 1: round 0",
                          "agent 1: bring the log of round 0, ranks 1-1, and follow it, to 1",
                          "agent 2: bring the log of round 0, ranks 2-2, and follow it, to 2"));
  Open(2, {.ranks = {{3, 3}}});
  EXPECT_THAT(Take(),
              ElementsAre("give 2: round 0", "agent 2: bring the log of round 0, ranks 3-3, to 3"));
}

TEST_F(LogReadersTest, WhoFollowsGoesOnWithTheNextRoundAndEndsWithTheJob) {
  StartJob();
  Open(1, {.ranks = {{1, 1}}, .extent = kFollows});
  logs().OpenDelivery(1);
  logs().Ready(1, now_);
  Take();
  Restart(0);
  EXPECT_THAT(Take(), IsEmpty()) << "of round 0 something may still come";
  Bring(1, "last words", 1);
  End(1);
  EXPECT_THAT(Take(), ElementsAre("give 1: rank 1: last words", "read 1"));
  logs().Ready(1, now_);
  EXPECT_THAT(Take(),
              ElementsAre("give 1: round 1: rank 1 on host host1 fell (restart 1 of 3)",
                          "agent 1: bring the log of round 1, ranks 1-1, and follow it, to 2"));
  logs().OpenDelivery(2);
  logs().Ready(1, now_);
  Take();
  Succeed(1);
  EXPECT_THAT(Take(), IsEmpty());
  End(2);
  EXPECT_THAT(Take(), ElementsAre("end 1: ok"));
}

// After a rank's restart, "muster logs -f --tail=5" showed only the last five lines it had printed
// by then.
TEST_F(LogReadersTest, TailIsOfTheFirstRoundAndOfLaterOnesAllIsWanted) {
  StartJob();
  Open(1, {.ranks = {{1, 1}}, .extent = {.since = seconds(9), .tail = 5, .follow = true}});
  EXPECT_THAT(Take(), ElementsAre("give 1: round 0",
                                  "agent 1: bring the log of round 0, ranks 1-1, last 5 lines, and "
                                  "follow it, to 1"));
  logs().OpenDelivery(1);
  End(1);
  logs().Ready(1, now_);
  Take();
  Restart(0);
  EXPECT_THAT(Take(),
              ElementsAre("give 1: round 1: rank 1 on host host1 fell (restart 1 of 3)",
                          "agent 1: bring the log of round 1, ranks 1-1, and follow it, to 2"));
}

// "muster logs -f ended when the daemon did."
TEST_F(LogReadersTest, WhoHasLostADaemonGoesOnWhereHeWas) {
  StartJob();
  Open(1, {.ranks = {{1, 3}},
           .round = 0,
           .extent = {.tail = 5,
                      .follow = true,
                      .from = {{1, LogStream::kStdout, 17},
                               {1, LogStream::kStderr, 3},
                               {2, LogStream::kStdout, 9}}},
           .incarnation = 1});
  EXPECT_THAT(Take(), ElementsAre("give 1: round 0",
                                  "agent 1: bring the log of round 0, ranks 1-1, stdout of rank 1 "
                                  "from byte 17, stderr of rank 1 from byte 3, last 5 lines, and "
                                  "follow it, to 1",
                                  "agent 2: bring the log of round 0, ranks 2-3, stdout of rank 2 "
                                  "from byte 9, last 5 lines, and follow it, to 2"));
  for (const LogDeliveryId delivery : {1, 2}) {
    logs().OpenDelivery(delivery);
    End(delivery);
  }
  logs().Ready(1, now_);
  Take();
  Restart(0);
  EXPECT_THAT(Take(),
              ElementsAre(HasSubstr("give 1: round 1"),
                          "agent 1: bring the log of round 1, ranks 1-1, and follow it, to 3",
                          "agent 2: bring the log of round 1, ranks 2-3, and follow it, to 4"))
      << "what was read of the round before is of no use";
}

TEST_F(LogReadersTest, OfARoundThatADaemonDoesNotKnowTheRestIsMissing) {
  StartJob();
  const LogExtent extent{.follow = true, .from = {{0, LogStream::kStdout, 17}}};
  Open(1, {.ranks = {{0, 0}}, .round = -1, .extent = extent, .incarnation = 1});
  EXPECT_THAT(Take(),
              ElementsAre("give 1: lost: round -1 is no longer known to the rendezvous; what was "
                          "printed in it and not shown here is missing"));
  logs().Ready(1, now_);
  EXPECT_THAT(Take(),
              ElementsAre("give 1: round 0",
                          "agent 1: bring the log of round 0, ranks 0-0, and follow it, to 1"));
  Open(2, {.ranks = {{0, 0}}, .round = 0, .extent = extent, .incarnation = 2});
  EXPECT_THAT(
      Take(),
      ElementsAre("end 2: NOT_FOUND: the job 'job' has ended; this is a new job of the same name"));
}

// After a restart of the daemon its readers may be back before its agents are.
TEST_F(LogReadersTest, WhoFollowsWaitsForAgentsThatMayComeBack) {
  for (const int agent : {1, 2}) {
    JoinRequest request = RequestFor(agent, 2);
    request.settings.lease = seconds(30);
    request.session = absl::StrCat("session-", agent);
    request.node.delivers_logs = true;
    core_.Hear(agent, request, now_);
  }
  Take();
  core_.Disconnected(2, "its connection broke", now_);
  Open(1, {.extent = kFollows});
  EXPECT_THAT(Take(),
              ElementsAre("give 1: round 0",
                          "agent 1: bring the log of round 0, ranks 0-0, and follow it, to 1"));
  logs().OpenDelivery(1);
  logs().Ready(1, now_);
  End(1);
  EXPECT_THAT(Take(), ElementsAre("read 1")) << "it is not all there yet";
  core_.Hear(3, Resume{"session-2", 2}, now_);
  EXPECT_THAT(Take(), ElementsAre("agent 3: bring the log of round 0, ranks 1-1, and follow it, "
                                  "to 2"));
  core_.Disconnected(3, "its connection broke", now_);
  End(2);
  Open(2, {.ranks = {{1, 1}}, .extent = kFollows});
  logs().Ready(2, now_);
  EXPECT_THAT(Take(), ElementsAre("give 2: round 0"));
  for (int i = 0; i < 60; ++i) Tick(seconds(1));
  EXPECT_THAT(Take(), ElementsAre(HasSubstr("give 2: lost: rank 1 of round 0 ran on host host2, "
                                            "which is not in touch")))
      << "it was given up";
}

TEST_F(LogReadersTest, RoundsBeforeAreKnown) {
  StartJob();
  Restart(0);
  Restart(1);
  Take();
  Open(1, {.ranks = {{0, 0}}, .previous = true});
  EXPECT_THAT(Take(), ElementsAre(HasSubstr("give 1: round 1: "), HasSubstr("log of round 1,")));
  Open(2, {.ranks = {{0, 0}}, .round = 0});
  EXPECT_THAT(Take(), ElementsAre("give 2: round 0", HasSubstr("log of round 0,")));
  Open(3, {.round = 3});
  EXPECT_THAT(Take(), ElementsAre("end 3: OUT_OF_RANGE: round 3 of job 'job' is not known here; "
                                  "rounds 0 to 2 are"));
}

// `muster logs` printed "no job 'job' here" for a job that `muster status` listed.
TEST_F(LogReadersTest, OfAJobThatHasEndedItIsSaidHowAndWhereItsOutputMayBe) {
  StartJob();
  Succeed(0);
  Leave();
  Take();
  now_ += seconds(75);
  Open(1, {});
  EXPECT_THAT(Take(), ElementsAre(AllOf(HasSubstr("end 1: FAILED_PRECONDITION: the job ended 75 s "
                                                  "ago: job 'job' succeeded"),
                                        HasSubstr("; its output was on its nodes, which have left: "
                                                  "where they had a --log-dir, it is there"))));
  Open(2, {.run_id = "other"});
  EXPECT_THAT(Take(), ElementsAre("end 2: NOT_FOUND: no job 'other' here"));
}

TEST_F(LogReadersTest, OfAJobThatHasFailedTheLogOfTheRankThatFailedIsNamed) {
  StartJob();
  core_.Hear(1,
             WorkersExited{{1, 0},
                           {.failure = WorkerFailure{.rank = 1,
                                                     .host = "host1",
                                                     .what = "fell",
                                                     .log_path = "/logs/1/stderr.log",
                                                     .final = true}}},
             now_);
  Leave();
  Take();
  Open(2, {.extent = kFollows});
  EXPECT_THAT(Take(), ElementsAre(AllOf(HasSubstr("end 2: FAILED_PRECONDITION: the job ended 0 ms "
                                                  "ago: job 'job' failed"),
                                        HasSubstr("which have left: the log of rank 1 is "
                                                  "/logs/1/stderr.log on host host1"))));
}

TEST_F(LogReadersTest, WhatThereIsNotIsRefusedInOneSentence) {
  Open(1, {});
  EXPECT_THAT(Take(), ElementsAre("end 1: NOT_FOUND: no job 'job' here"));
  Join(1);
  Open(2, {});
  EXPECT_THAT(Take(), ElementsAre(HasSubstr("end 2: FAILED_PRECONDITION: job 'job' has started no "
                                            "workers: round 0: 1 of 2 nodes")));
  Open(3, {.extent = kFollows});
  EXPECT_THAT(Take(), IsEmpty()) << "it waits for the first round";
  Join(2);
  EXPECT_THAT(Take(), ElementsAre("give 3: round 0", HasSubstr("agent 1"), HasSubstr("agent 2")));
  Open(4, {.ranks = {{2, 4}}});
  EXPECT_THAT(
      Take(),
      ElementsAre("end 4: OUT_OF_RANGE: round 0 of job 'job' has ranks 0 to 3, and no rank 4"));
  Open(5, {.ranks = {{2, 1}}});
  EXPECT_THAT(Take(), ElementsAre("end 5: INVALID_ARGUMENT: from rank 2 to rank 1 there is none"));
  Open(6, {.previous = true});
  EXPECT_THAT(Take(), ElementsAre("end 6: OUT_OF_RANGE: no round of job 'job' before the last one "
                                  "is known here"));
}

TEST_F(LogReadersTest, WhatCannotBeHadIsTold) {
  Join(1, /*delivers=*/false);
  Join(2);
  Take();
  Open(1, {});
  logs().Ready(1, now_);
  EXPECT_THAT(Take(),
              ElementsAre("give 1: round 0",
                          "give 1: lost: ranks 0 to 1 of round 0 ran on host host1, whose Muster "
                          "is older and cannot send logs",
                          "agent 2: bring the log of round 0, ranks 2-3, to 1"));
  Tick(seconds(10));
  logs().Ready(1, now_);
  EXPECT_THAT(Take(), ElementsAre("give 1: lost: host host2: its agent has not answered within 10 "
                                  "s"));
  EXPECT_FALSE(logs().OpenDelivery(1)) << "too late";
  logs().Ready(1, now_);
  EXPECT_THAT(Take(), ElementsAre("end 1: DATA_LOSS: some output is missing, as noted above"));
}

TEST_F(LogReadersTest, NodeThatDiesWhileItDeliversIsNamedAndTheReaderGoesOn) {
  StartJob();
  Open(1, {.extent = kFollows});
  logs().OpenDelivery(1);
  logs().OpenDelivery(2);
  logs().Ready(1, now_);
  Take();
  logs().Ended(1, absl::UnavailableError("its connection broke"), now_);
  EXPECT_THAT(Take(), ElementsAre("give 1: lost: host host1: its connection broke"));
  Bring(2, "still here", 2);
  logs().Ready(1, now_);
  EXPECT_THAT(Take(), ElementsAre("give 1: rank 2: still here", "read 2"));
}

// "muster logs" hung when the job's agent was stopped (SIGSTOP) during a delivery.
TEST_F(LogReadersTest, AgentThatIsLostWhileItDeliversIsWaitedForNoLonger) {
  StartJob();
  Open(1, {});
  logs().OpenDelivery(1);
  Bring(1, "a");
  logs().Ready(1, now_);
  EXPECT_THAT(Take(),
              ElementsAre("give 1: round 0", "agent 1: bring the log of round 0, ranks 0-1, to 1",
                          "read 1", "give 1: rank 0: a", "read 1"));
  logs().Ready(1, now_);
  Tick(seconds(60));
  EXPECT_THAT(Take(), IsEmpty()) << "it attends, and may take its time";
  core_.Hear(1, Goodbye{}, now_);
  Tick(seconds(9));
  EXPECT_THAT(Take(), IsEmpty()) << "who leaves brings what is left";
  EXPECT_EQ(core_.NextDeadline(), now_ + seconds(1));
  Tick(seconds(1));
  EXPECT_THAT(Take(),
              ElementsAre("cut 1",
                          "give 1: lost: host host1: its agent no longer takes part in the job, "
                          "and what it did not bring within 10 s of that is missing",
                          "agent 2: bring the log of round 0, ranks 2-3, to 2"));
}

TEST_F(LogReadersTest, ReaderWhoIsGoneCutsHisDeliveriesOff) {
  StartJob();
  Open(1, {.extent = kFollows});
  logs().OpenDelivery(1);
  Take();
  logs().Close(1);
  EXPECT_THAT(Take(), ElementsAre("cut 1"));
  EXPECT_FALSE(logs().OpenDelivery(2)) << "it was asked for, and is wanted no longer";
  Bring(1, "on its way");
  End(1);
  logs().Ready(1, now_);
  EXPECT_THAT(Take(), IsEmpty());
  EXPECT_EQ(logs().readers() + logs().deliveries(), 0u);
}

// For a slow reader at most one part per node is in memory, however much nodes print.
TEST_F(LogReadersTest, OfEachDeliveryOnePartIsHere) {
  StartJob();
  Open(1, {.extent = kFollows});
  logs().OpenDelivery(1);
  logs().OpenDelivery(2);
  Take();
  Bring(1, "a");
  Bring(2, "b", 2);
  EXPECT_THAT(Take(), IsEmpty());
  logs().Ready(1, now_);
  EXPECT_THAT(Take(), ElementsAre("give 1: rank 0: a", "read 1"));
  Bring(1, "c");
  logs().Ready(1, now_);
  EXPECT_THAT(Take(), ElementsAre("give 1: rank 2: b", "read 2")) << "in turns";
}

TEST_F(LogReadersTest, ReaderHasAWhileWhenTheJobIsGone) {
  StartJob();
  Open(1, {.ranks = {{0, 0}}, .extent = kFollows});
  logs().OpenDelivery(1);
  Take();
  Succeed(0);
  Leave();
  EXPECT_FALSE(core_.idle()) << "the reader has not taken everything";
  EXPECT_THAT(Take(), IsEmpty());
  Bring(1, "the end");
  Tick(seconds(9));
  EXPECT_THAT(Take(), IsEmpty());
  Tick(seconds(1));
  EXPECT_THAT(Take(), ElementsAre("end 1: DEADLINE_EXCEEDED: the job is gone, and what was not "
                                  "read within 10 s of that is lost",
                                  "cut 1"));
  EXPECT_TRUE(core_.idle());
}

TEST_F(LogReadersTest, AnotherJobOfTheNameIsNotTakenForTheOneThatIsRead) {
  StartJob();
  Open(1, {.ranks = {{0, 0}}, .extent = kFollows});
  logs().OpenDelivery(1);
  logs().Ready(1, now_);
  Take();
  Succeed(0);
  Leave();
  StartJob();
  End(1);
  EXPECT_THAT(Take(), ElementsAre("end 1: ok"));
}

TEST_F(LogReadersTest, AJobHasSoManyReaders) {
  StartJob();
  for (LogReaderId id = 1; id <= limits::kLogReadersOfJob.most; ++id) {
    Open(id, {.ranks = {{0, 0}}, .extent = kFollows});
  }
  Take();
  Open(17, {});
  EXPECT_THAT(Take(), ElementsAre("end 17: RESOURCE_EXHAUSTED: 16 readers of the logs of job 'job' "
                                  "are there, which is the limit"));
  logs().Close(3);
  Open(18, {.ranks = {{0, 0}}});
  EXPECT_THAT(Take(), ElementsAre("give 18: round 0", HasSubstr("agent 1: bring")));
}

class FewLogReadersTest : public LogReadersTest {
 protected:
  FewLogReadersTest() : LogReadersTest({.readers = 3, .deliveries = 2, .all_readers = &all_}) {}

  static ByteBudget all_;
};
ByteBudget FewLogReadersTest::all_(2);

TEST_F(FewLogReadersTest, AndSoManyDeliveriesAndReadersThereAreInAll) {
  StartJob();
  Open(1, {.extent = kFollows});
  Take();
  Open(2, {.ranks = {{0, 0}}});
  logs().Ready(2, now_);
  EXPECT_THAT(Take(), ElementsAre("give 2: round 0",
                                  "give 2: lost: host host1 was not asked for its ranks, as 2 "
                                  "deliveries of logs are under way, which is the limit"));
  Open(3, {});
  EXPECT_THAT(Take(), ElementsAre("end 3: RESOURCE_EXHAUSTED: 2 readers of logs are there, which "
                                  "is the limit"));
  logs().Close(1);
  Open(4, {.ranks = {{0, 0}}});
  EXPECT_THAT(Take(), ElementsAre("give 4: round 0", HasSubstr("agent 1: bring")));
}

}  // namespace
}  // namespace muster::rendezvous
