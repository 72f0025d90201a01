// The DaemonLoop with a real clock, a real loop, and sinks that record what they receive.
#include "rendezvous/fronts/daemon_loop.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <new>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/post.hpp>

#include "test/rendezvous/support/directive_text.h"
#include "test/rendezvous/support/join_request.h"
#include "test/support/run_until.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using test::RunUntil;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class DaemonLoopTest : public ::testing::Test {
 protected:
  // An agent whose directives are logged as "NAME: first word of the directive".
  AgentId Attach(const std::string& name) {
    return daemon_loop_.Attach([this, name](const Directive& directive) { Log(name, directive); });
  }
  void Log(const std::string& name, const Directive& directive) {
    const std::string text = DirectiveText(directive);
    log_.push_back(name + ": " + text.substr(0, text.find_first_of(" :")));
  }

  boost::asio::io_context io_;
  std::vector<std::string> transitions_;
  DaemonLoop daemon_loop_{io_, [this](const Transition& transition) {
                            transitions_.push_back(transition.run_id + ": " + transition.text);
                          }};
  std::vector<std::string> log_;
};

TEST_F(DaemonLoopTest, DirectivesReachTheirAgents) {
  const AgentId a = Attach("a");
  const AgentId b = Attach("b");
  daemon_loop_.Hear(a, RequestFor(1, 2));
  EXPECT_THAT(log_, ElementsAre("a: welcome"));
  daemon_loop_.Hear(b, RequestFor(2, 2));
  EXPECT_THAT(log_, ElementsAre("a: welcome", "b: welcome", "a: start", "b: start"));
  EXPECT_THAT(transitions_, Contains(StartsWith("job: starts: ")));
}

TEST_F(DaemonLoopTest, WhatASinkBringsAboutIsDeliveredAfterWhatIsBeingDelivered) {
  AgentId a = 0;
  a = daemon_loop_.Attach([&](const Directive& directive) {
    Log("a", directive);
    // Its worker fails before b has been told to start.
    if (const auto* place = std::get_if<Assignment>(&directive)) {
      daemon_loop_.Hear(a,
                        WorkersExited{place->id(), {.failure = WorkerFailure{.what = "failed"}}});
      log_.push_back("a: has reported");
    }
  });
  const AgentId b = Attach("b");
  JoinRequest request = RequestFor(1, 2);
  request.settings.max_restarts = 1;
  daemon_loop_.Hear(a, request);
  log_.clear();
  daemon_loop_.Hear(b, RequestFor(2, 2));
  EXPECT_THAT(log_, ElementsAre("b: welcome", "a: start", "a: has reported", "b: start", "a: stop",
                                "b: stop"));
}

// "With ten thousand nodes the daemon read no messages for a quarter of a second when a round
// began."
TEST_F(DaemonLoopTest, OthersAreHeardWhileThousandsAreTold) {
  constexpr int kNodes = 1000;
  std::vector<AgentId> agents;
  for (int i = 0; i < kNodes; ++i) agents.push_back(Attach("node"));
  for (int i = 0; i < kNodes - 1; ++i) daemon_loop_.Hear(agents[i], RequestFor(i, kNodes));
  ASSERT_TRUE(RunUntil(io_, [this] { return log_.size() == kNodes - 1; }));
  log_.clear();
  daemon_loop_.Hear(agents.back(), RequestFor(kNodes - 1, kNodes));
  EXPECT_LT(log_.size(), std::size_t{kNodes}) << "all in one turn";
  std::size_t told_before = 0;
  boost::asio::post(io_, [&] {
    told_before = log_.size();
    daemon_loop_.Hear(agents.front(), KeepAlive{1});
  });
  ASSERT_TRUE(RunUntil(io_, [this] { return log_.size() == kNodes + 2; }));
  EXPECT_LT(told_before, std::size_t{kNodes}) << "nobody was heard in between";
  // A keep-alive's answer does not wait for its turn; the welcomes are the first messages.
  const auto heard = std::find(log_.begin(), log_.end(), "node: heard");
  ASSERT_NE(heard, log_.end());
  EXPECT_LT(heard - log_.begin(), kNodes);
  EXPECT_EQ(std::count(log_.begin(), log_.end(), "node: start"), kNodes);
}

TEST_F(DaemonLoopTest, SinkMayLeaveForGoodFromWithin) {
  AgentId a = 0;
  a = daemon_loop_.Attach([&](const Directive& directive) {
    Log("a", directive);
    if (!std::holds_alternative<Assignment>(directive)) return;
    daemon_loop_.Detach(a);
    daemon_loop_.Hear(a, Goodbye{});
  });
  daemon_loop_.Hear(a, RequestFor(1, 1));
  EXPECT_THAT(log_, ElementsAre("a: welcome", "a: start"));
  EXPECT_EQ(daemon_loop_.agent_count(), 0);
}

TEST_F(DaemonLoopTest, DetachedAgentIsToldNothing) {
  const AgentId a = Attach("a");
  daemon_loop_.Hear(a, RequestFor(1, 2));
  daemon_loop_.Detach(a);
  log_.clear();
  daemon_loop_.Close("the end");
  EXPECT_THAT(log_, IsEmpty());
  EXPECT_EQ(daemon_loop_.agent_count(), 1) << "the Coordinator is told by Leave or Lost";
}

TEST_F(DaemonLoopTest, SilentAgentIsEvictedWhenItsLeaseEnds) {
  const AgentId silent = Attach("silent");
  const AgentId other = Attach("other");
  JoinRequest request = RequestFor(1, 2);
  request.settings.lease = milliseconds(100);
  // The later lease, of 3 s, is awaited when the earlier deadline comes.
  daemon_loop_.Hear(other, RequestFor(2, 2));
  daemon_loop_.Hear(silent, request);
  log_.clear();
  ASSERT_TRUE(RunUntil(io_, [this] { return daemon_loop_.agent_count() == 1; }));
  EXPECT_THAT(log_, ElementsAre("silent: evicted", "other: stop"));
}

// "A daemon crashed while shutting down": its timer had expired, and the loop ran on without it.
TEST(DriverEndTest, TimeThatHasComeDoesNotOutliveTheDriver) {
  boost::asio::io_context io;
  alignas(DaemonLoop) std::array<std::byte, sizeof(DaemonLoop)> memory;
  DaemonLoop* const daemon_loop = new (memory.data()) DaemonLoop(io, nullptr);
  JoinRequest request = RequestFor(1, 2);
  request.settings.lease = milliseconds(100);
  daemon_loop->Hear(daemon_loop->Attach([](const Directive&) {}), request);
  bool destroyed = false;
  boost::asio::post(io, [&] {
    // Blocks the loop until the lease is over; it then finds both at once, the destruction first.
    const auto due = std::chrono::steady_clock::now() + milliseconds(300);
    while (std::chrono::steady_clock::now() < due) {
    }
    boost::asio::post(io, [&] {
      daemon_loop->~DaemonLoop();
      memory.fill(std::byte{0});
      destroyed = true;
    });
  });
  io.run();
  EXPECT_TRUE(destroyed);
}

TEST_F(DaemonLoopTest, LastCallEndsWithoutAnyEvent) {
  const AgentId a = Attach("a");
  JoinRequest request = RequestFor(1, 2);
  request.settings.min_nodes = 1;
  request.settings.last_call = milliseconds(20);
  daemon_loop_.Hear(a, request);
  EXPECT_THAT(log_, ElementsAre("a: welcome"));
  ASSERT_TRUE(RunUntil(io_, [this] { return log_.back() == "a: start"; }));
}

TEST_F(DaemonLoopTest, LoopRunsDryWhenThereIsNothingToWaitFor) {
  const AgentId a = Attach("a");
  daemon_loop_.Hear(a, RequestFor(1, 2));
  io_.poll();
  EXPECT_FALSE(io_.stopped()) << "the join timeout is waited for";
  daemon_loop_.Hear(a, Goodbye{});
  io_.restart();
  io_.poll();
  EXPECT_TRUE(io_.stopped());
}

TEST_F(DaemonLoopTest, IdleIsToldOnceTheLastAgentHasGone) {
  const AgentId a = Attach("a");
  const AgentId b = Attach("b");
  daemon_loop_.Hear(a, RequestFor(1, 2));
  daemon_loop_.Hear(b, RequestFor(2, 2));
  int told = 0;
  daemon_loop_.WhenIdle([&] { ++told; });
  daemon_loop_.Hear(a, Goodbye{});
  io_.poll();
  EXPECT_EQ(told, 0);
  daemon_loop_.Disconnected(b, "its stream ended");
  EXPECT_EQ(told, 0) << "it comes from the loop";
  io_.restart();
  io_.poll();
  EXPECT_EQ(told, 1);
}

TEST_F(DaemonLoopTest, IdleDriverSaysSoFromTheLoop) {
  bool told = false;
  daemon_loop_.WhenIdle([&] { told = true; });
  EXPECT_FALSE(told);
  io_.poll();
  EXPECT_TRUE(told);
}

TEST_F(DaemonLoopTest, IdleIsToldOfAnAgentThatLeavesInItsSink) {
  AgentId a = 0;
  a = daemon_loop_.Attach([&](const Directive& directive) {
    if (std::holds_alternative<Verdict>(directive)) daemon_loop_.Hear(a, Goodbye{});
  });
  daemon_loop_.Hear(a, RequestFor(1, 2));
  bool told = false;
  daemon_loop_.WhenIdle([&] { told = true; });
  daemon_loop_.Close("the end");
  io_.poll();
  EXPECT_TRUE(told);
}

TEST_F(DaemonLoopTest, JobAndItsStoreAreForgottenWithTheLastAgent) {
  absl::Status waits;
  const auto wait_in_vain = [&] {
    daemon_loop_.Call({.run_id = "job",
                       .body = [](KeyValueStore&) { return absl::OkStatus(); },
                       .wait = StoreCall::Wait{.keys = {"never"}}},
                      [&waits](CallId, const absl::Status& status) { waits = status; });
  };
  const AgentId a = Attach("a");
  const AgentId b = Attach("b");
  daemon_loop_.Hear(a, RequestFor(1, 2));
  daemon_loop_.Hear(b, RequestFor(2, 2));
  wait_in_vain();
  daemon_loop_.Hear(a, Goodbye{});
  EXPECT_TRUE(waits.ok());
  daemon_loop_.Hear(b, Goodbye{});
  EXPECT_TRUE(absl::IsAborted(waits));
  wait_in_vain();
  EXPECT_TRUE(absl::IsNotFound(waits));
  EXPECT_EQ(daemon_loop_.Describe("job")->state, JobState::kEnded);
  EXPECT_EQ(daemon_loop_.job_count(), 0);
}

TEST_F(DaemonLoopTest, DrainRefusesNewcomersAndLetsTheOthersGoOn) {
  const AgentId a = Attach("a");
  const AgentId late = Attach("late");
  daemon_loop_.Hear(a, RequestFor(1, 2));
  daemon_loop_.Drain("maintenance");
  daemon_loop_.Hear(late, RequestFor(2, 2));
  EXPECT_THAT(log_, ElementsAre("a: welcome", "late: refused"));
  EXPECT_EQ(daemon_loop_.agent_count(), 1);
}

TEST_F(DaemonLoopTest, SnapshotsShowTheJobsInOrderOfTheirIds) {
  JoinRequest second = RequestFor(2, 2);
  second.run_id = "a-job";
  daemon_loop_.Hear(Attach("a"), RequestFor(1, 1));
  daemon_loop_.Hear(Attach("b"), second);
  const std::vector<JobSnapshot> jobs = daemon_loop_.List().value();
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].run_id, "a-job");
  EXPECT_EQ(jobs[0].state, JobState::kGathering);
  EXPECT_EQ(jobs[1].run_id, "job");
  EXPECT_EQ(jobs[1].state, JobState::kRunning);
  ASSERT_TRUE(daemon_loop_.Describe("a-job").ok());
  EXPECT_THAT(daemon_loop_.Describe("a-job")->sentence, HasSubstr("host2"));
  EXPECT_TRUE(absl::IsNotFound(daemon_loop_.Describe("another").status()));
}

// "muster status showed outdated state once more after the leader had been stalled."
TEST_F(DaemonLoopTest, WhoLeadsNoLongerShowsNoJobs) {
  bool leads = true;
  daemon_loop_.LeadBy([&leads] { return leads; });
  daemon_loop_.Hear(Attach("a"), RequestFor(1, 1));
  EXPECT_TRUE(daemon_loop_.Describe("job").ok());
  EXPECT_EQ(daemon_loop_.List().value().size(), 1u);
  leads = false;
  EXPECT_TRUE(absl::IsUnavailable(daemon_loop_.Standing()));
  EXPECT_TRUE(absl::IsUnavailable(daemon_loop_.Describe("job").status()));
  EXPECT_TRUE(absl::IsUnavailable(daemon_loop_.Describe("another").status()));
  EXPECT_TRUE(absl::IsUnavailable(daemon_loop_.List().status()));
}

}  // namespace
}  // namespace muster::rendezvous
