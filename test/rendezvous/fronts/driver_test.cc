// The Driver with a real clock, a real loop, and sinks that record what they receive.
#include "rendezvous/fronts/driver.h"

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

class DriverTest : public ::testing::Test {
 protected:
  // An agent whose directives are logged as "NAME: first word of the directive".
  AgentId Attach(const std::string& name) {
    return driver_.Attach([this, name](const Directive& directive) { Log(name, directive); });
  }
  void Log(const std::string& name, const Directive& directive) {
    const std::string text = DirectiveText(directive);
    log_.push_back(name + ": " + text.substr(0, text.find_first_of(" :")));
  }

  boost::asio::io_context io_;
  std::vector<std::string> transitions_;
  Driver driver_{io_, [this](const Transition& transition) {
                   transitions_.push_back(transition.run_id + ": " + transition.text);
                 }};
  std::vector<std::string> log_;
};

TEST_F(DriverTest, DirectivesReachTheirAgents) {
  const AgentId a = Attach("a");
  const AgentId b = Attach("b");
  driver_.Hear(a, RequestFor(1, 2));
  EXPECT_THAT(log_, ElementsAre("a: welcome"));
  driver_.Hear(b, RequestFor(2, 2));
  EXPECT_THAT(log_, ElementsAre("a: welcome", "b: welcome", "a: start", "b: start"));
  EXPECT_THAT(transitions_, Contains(StartsWith("job: starts: ")));
}

TEST_F(DriverTest, WhatASinkBringsAboutIsDeliveredAfterWhatIsBeingDelivered) {
  AgentId a = 0;
  a = driver_.Attach([&](const Directive& directive) {
    Log("a", directive);
    // Its worker fails before b has been told to start.
    if (const auto* place = std::get_if<Assignment>(&directive)) {
      driver_.Hear(a, WorkersExited{place->id(), {.failure = WorkerFailure{.what = "failed"}}});
      log_.push_back("a: has reported");
    }
  });
  const AgentId b = Attach("b");
  JoinRequest request = RequestFor(1, 2);
  request.settings.max_restarts = 1;
  driver_.Hear(a, request);
  log_.clear();
  driver_.Hear(b, RequestFor(2, 2));
  EXPECT_THAT(log_, ElementsAre("b: welcome", "a: start", "a: has reported", "b: start", "a: stop",
                                "b: stop"));
}

// "With ten thousand nodes the daemon heard nobody for a quarter of a second when a round began."
TEST_F(DriverTest, OthersAreHeardWhileThousandsAreTold) {
  constexpr int kNodes = 1000;
  std::vector<AgentId> agents;
  for (int i = 0; i < kNodes; ++i) agents.push_back(Attach("node"));
  for (int i = 0; i < kNodes - 1; ++i) driver_.Hear(agents[i], RequestFor(i, kNodes));
  ASSERT_TRUE(RunUntil(io_, [this] { return log_.size() == kNodes - 1; }));
  log_.clear();
  driver_.Hear(agents.back(), RequestFor(kNodes - 1, kNodes));
  EXPECT_LT(log_.size(), std::size_t{kNodes}) << "all in one turn";
  std::size_t told_before = 0;
  boost::asio::post(io_, [&] {
    told_before = log_.size();
    driver_.Hear(agents.front(), KeepAlive{1});
  });
  ASSERT_TRUE(RunUntil(io_, [this] { return log_.size() == kNodes + 2; }));
  EXPECT_LT(told_before, std::size_t{kNodes}) << "nobody was heard in between";
  // A beat's answer does not wait for its turn; its welcome is the last one's first word.
  const auto heard = std::find(log_.begin(), log_.end(), "node: heard");
  ASSERT_NE(heard, log_.end());
  EXPECT_LT(heard - log_.begin(), kNodes);
  EXPECT_EQ(std::count(log_.begin(), log_.end(), "node: start"), kNodes);
}

TEST_F(DriverTest, SinkMayLeaveForGoodFromWithin) {
  AgentId a = 0;
  a = driver_.Attach([&](const Directive& directive) {
    Log("a", directive);
    if (!std::holds_alternative<Assignment>(directive)) return;
    driver_.Detach(a);
    driver_.Hear(a, Goodbye{});
  });
  driver_.Hear(a, RequestFor(1, 1));
  EXPECT_THAT(log_, ElementsAre("a: welcome", "a: start"));
  EXPECT_EQ(driver_.agent_count(), 0);
}

TEST_F(DriverTest, DetachedAgentIsToldNothing) {
  const AgentId a = Attach("a");
  driver_.Hear(a, RequestFor(1, 2));
  driver_.Detach(a);
  log_.clear();
  driver_.Close("the end");
  EXPECT_THAT(log_, IsEmpty());
  EXPECT_EQ(driver_.agent_count(), 1) << "the Coordinator is told by Leave or Lost";
}

TEST_F(DriverTest, SilentAgentIsEvictedWhenItsLeaseEnds) {
  const AgentId silent = Attach("silent");
  const AgentId other = Attach("other");
  JoinRequest request = RequestFor(1, 2);
  request.settings.lease = milliseconds(100);
  // The lease of the other, 3 s, is waited for when the earlier deadline comes.
  driver_.Hear(other, RequestFor(2, 2));
  driver_.Hear(silent, request);
  log_.clear();
  ASSERT_TRUE(RunUntil(io_, [this] { return driver_.agent_count() == 1; }));
  EXPECT_THAT(log_, ElementsAre("silent: evicted", "other: stop"));
}

// "A daemon crashed as it ended": the time of its timer had come, and the loop went on without it.
TEST(DriverEndTest, TimeThatHasComeDoesNotOutliveTheDriver) {
  boost::asio::io_context io;
  alignas(Driver) std::array<std::byte, sizeof(Driver)> memory;
  Driver* const driver = new (memory.data()) Driver(io, nullptr);
  JoinRequest request = RequestFor(1, 2);
  request.settings.lease = milliseconds(100);
  driver->Hear(driver->Attach([](const Directive&) {}), request);
  bool destroyed = false;
  boost::asio::post(io, [&] {
    // The loop is held until the lease is over; it then finds both at once, the destruction first.
    const auto due = std::chrono::steady_clock::now() + milliseconds(300);
    while (std::chrono::steady_clock::now() < due) {
    }
    boost::asio::post(io, [&] {
      driver->~Driver();
      memory.fill(std::byte{0});
      destroyed = true;
    });
  });
  io.run();
  EXPECT_TRUE(destroyed);
}

TEST_F(DriverTest, LastCallEndsWithoutAnyEvent) {
  const AgentId a = Attach("a");
  JoinRequest request = RequestFor(1, 2);
  request.settings.min_nodes = 1;
  request.settings.last_call = milliseconds(20);
  driver_.Hear(a, request);
  EXPECT_THAT(log_, ElementsAre("a: welcome"));
  ASSERT_TRUE(RunUntil(io_, [this] { return log_.back() == "a: start"; }));
}

TEST_F(DriverTest, LoopRunsDryWhenThereIsNothingToWaitFor) {
  const AgentId a = Attach("a");
  driver_.Hear(a, RequestFor(1, 2));
  io_.poll();
  EXPECT_FALSE(io_.stopped()) << "the join timeout is waited for";
  driver_.Hear(a, Goodbye{});
  io_.restart();
  io_.poll();
  EXPECT_TRUE(io_.stopped());
}

TEST_F(DriverTest, IdleIsToldOnceTheLastAgentHasGone) {
  const AgentId a = Attach("a");
  const AgentId b = Attach("b");
  driver_.Hear(a, RequestFor(1, 2));
  driver_.Hear(b, RequestFor(2, 2));
  int told = 0;
  driver_.WhenIdle([&] { ++told; });
  driver_.Hear(a, Goodbye{});
  io_.poll();
  EXPECT_EQ(told, 0);
  driver_.Disconnected(b, "its stream ended");
  EXPECT_EQ(told, 0) << "it comes from the loop";
  io_.restart();
  io_.poll();
  EXPECT_EQ(told, 1);
}

TEST_F(DriverTest, IdleDriverSaysSoFromTheLoop) {
  bool told = false;
  driver_.WhenIdle([&] { told = true; });
  EXPECT_FALSE(told);
  io_.poll();
  EXPECT_TRUE(told);
}

TEST_F(DriverTest, IdleIsToldOfAnAgentThatLeavesInItsSink) {
  AgentId a = 0;
  a = driver_.Attach([&](const Directive& directive) {
    if (std::holds_alternative<Verdict>(directive)) driver_.Hear(a, Goodbye{});
  });
  driver_.Hear(a, RequestFor(1, 2));
  bool told = false;
  driver_.WhenIdle([&] { told = true; });
  driver_.Close("the end");
  io_.poll();
  EXPECT_TRUE(told);
}

TEST_F(DriverTest, JobAndItsStoreAreForgottenWithTheLastAgent) {
  absl::Status waits;
  const auto wait_in_vain = [&] {
    driver_.Call({.run_id = "job",
                  .body = [](KeyValueStore&) { return absl::OkStatus(); },
                  .wait = StoreCall::Wait{.keys = {"never"}}},
                 [&waits](CallId, const absl::Status& status) { waits = status; });
  };
  const AgentId a = Attach("a");
  const AgentId b = Attach("b");
  driver_.Hear(a, RequestFor(1, 2));
  driver_.Hear(b, RequestFor(2, 2));
  wait_in_vain();
  driver_.Hear(a, Goodbye{});
  EXPECT_TRUE(waits.ok());
  driver_.Hear(b, Goodbye{});
  EXPECT_TRUE(absl::IsAborted(waits));
  wait_in_vain();
  EXPECT_TRUE(absl::IsNotFound(waits));
  EXPECT_EQ(driver_.Describe("job")->state, JobState::kEnded);
  EXPECT_EQ(driver_.job_count(), 0);
}

TEST_F(DriverTest, DrainRefusesNewcomersAndLetsTheOthersGoOn) {
  const AgentId a = Attach("a");
  const AgentId late = Attach("late");
  driver_.Hear(a, RequestFor(1, 2));
  driver_.Drain("maintenance");
  driver_.Hear(late, RequestFor(2, 2));
  EXPECT_THAT(log_, ElementsAre("a: welcome", "late: refused"));
  EXPECT_EQ(driver_.agent_count(), 1);
}

TEST_F(DriverTest, SnapshotsShowTheJobsInOrderOfTheirIds) {
  JoinRequest second = RequestFor(2, 2);
  second.run_id = "a-job";
  driver_.Hear(Attach("a"), RequestFor(1, 1));
  driver_.Hear(Attach("b"), second);
  const std::vector<JobSnapshot> jobs = driver_.List().value();
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].run_id, "a-job");
  EXPECT_EQ(jobs[0].state, JobState::kGathering);
  EXPECT_EQ(jobs[1].run_id, "job");
  EXPECT_EQ(jobs[1].state, JobState::kRunning);
  ASSERT_TRUE(driver_.Describe("a-job").ok());
  EXPECT_THAT(driver_.Describe("a-job")->sentence, HasSubstr("host2"));
  EXPECT_TRUE(absl::IsNotFound(driver_.Describe("another").status()));
}

// "muster status showed once more what had been, after the leader had stood still."
TEST_F(DriverTest, WhoLeadsNoLongerShowsNoJobs) {
  bool leads = true;
  driver_.LeadBy([&leads] { return leads; });
  driver_.Hear(Attach("a"), RequestFor(1, 1));
  EXPECT_TRUE(driver_.Describe("job").ok());
  EXPECT_EQ(driver_.List().value().size(), 1u);
  leads = false;
  EXPECT_TRUE(absl::IsUnavailable(driver_.Standing()));
  EXPECT_TRUE(absl::IsUnavailable(driver_.Describe("job").status()));
  EXPECT_TRUE(absl::IsUnavailable(driver_.Describe("another").status()));
  EXPECT_TRUE(absl::IsUnavailable(driver_.List().status()));
}

}  // namespace
}  // namespace muster::rendezvous
