#include "rendezvous/fronts/flow_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "test/support/run_until.h"

namespace muster::rendezvous {
namespace {

using ::testing::ElementsAre;
using Turn = std::unique_ptr<ReadScheduler::Turn>;

class ReadSchedulerTest : public ::testing::Test {
 protected:
  void Make(const ReadScheduler::Limits& limits) { turns_.emplace(io_, limits); }
  Turn Ask(const char* host, const std::string& name) { return AskAs("", host, name); }
  Turn AskAs(const std::string& tenant, const char* host, const std::string& name) {
    return turns_->Ask(
        tenant, boost::asio::ip::make_address(host), [this, name] { begun_.push_back(name); },
        [this, name] { too_slow_.push_back(name); });
  }

  static constexpr char kHere[] = "10.0.0.1", kThere[] = "10.0.0.2";
  boost::asio::io_context io_;
  std::optional<ReadScheduler> turns_;
  std::vector<std::string> begun_, too_slow_;
};

TEST_F(ReadSchedulerTest, SoManyAtOnceAndTheOthersInTheirOrder) {
  Make({.at_once = 2, .of_host = 2, .patience = std::chrono::hours(1)});
  Turn a = Ask(kHere, "a"), b = Ask(kHere, "b"), c = Ask(kHere, "c"), d = Ask(kHere, "d");
  EXPECT_THAT(begun_, ElementsAre("a", "b"));
  b.reset();
  EXPECT_THAT(begun_, ElementsAre("a", "b", "c"));
  // A reader that leaves the queue does not use up a turn.
  d.reset();
  a.reset();
  c.reset();
  EXPECT_EQ(turns_->reading(), 0u);
  EXPECT_EQ(turns_->waiting(), 0u);
}

TEST_F(ReadSchedulerTest, AHostWithALongLineDelaysNobodyElse) {
  Make({.at_once = 3, .of_host = 2, .patience = std::chrono::hours(1)});
  std::vector<Turn> of_here;
  for (int i = 0; i < 100; ++i) of_here.push_back(Ask(kHere, "a" + std::to_string(i)));
  EXPECT_THAT(begun_, ElementsAre("a0", "a1"));
  const Turn b0 = Ask(kThere, "b0"), b1 = Ask(kThere, "b1");
  EXPECT_THAT(begun_, ElementsAre("a0", "a1", "b0"));
  // They take turns from then on.
  of_here[0].reset();
  EXPECT_THAT(begun_, ElementsAre("a0", "a1", "b0", "a2"));
  of_here[1].reset();
  EXPECT_THAT(begun_, ElementsAre("a0", "a1", "b0", "a2", "b1"));
}

// "no answer within 10 s": another user of the login node opened calls and sent no message.
TEST_F(ReadSchedulerTest, ATenantWithALongLineDelaysNoOtherAtTheSameAddress) {
  Make({.at_once = 3, .of_tenant = 2, .of_host = 2, .patience = std::chrono::hours(1)});
  std::vector<Turn> of_alice;
  for (int i = 0; i < 100; ++i) of_alice.push_back(AskAs("alice", kHere, "a" + std::to_string(i)));
  const Turn b0 = AskAs("bob", kHere, "b0"), b1 = AskAs("bob", kHere, "b1");
  EXPECT_THAT(begun_, ElementsAre("a0", "a1", "b0"));
  of_alice[0].reset();
  EXPECT_THAT(begun_, ElementsAre("a0", "a1", "b0", "a2"));
  of_alice[1].reset();
  EXPECT_THAT(begun_, ElementsAre("a0", "a1", "b0", "a2", "b1"));
}

TEST_F(ReadSchedulerTest, ATenantOfManyHostsDoesNotHaveAll) {
  Make({.at_once = 3, .of_tenant = 2, .of_host = 1, .patience = std::chrono::hours(1)});
  const Turn a0 = AskAs("alice", kHere, "a0"), a1 = AskAs("alice", kThere, "a1"),
             a2 = AskAs("alice", "10.0.0.3", "a2"), b0 = AskAs("bob", kHere, "b0");
  EXPECT_THAT(begun_, ElementsAre("a0", "a1", "b0"));
}

TEST_F(ReadSchedulerTest, WhoTakesTooLongMakesRoomForWhoWaits) {
  Make({.at_once = 1, .of_host = 1, .patience = std::chrono::milliseconds(20)});
  const Turn slow = Ask(kHere, "slow");
  // No reader waits for it yet.
  io_.run_for(std::chrono::milliseconds(50));
  EXPECT_THAT(too_slow_, ElementsAre());
  io_.restart();
  const Turn next = Ask(kThere, "next");
  EXPECT_TRUE(test::RunUntil(io_, [&] { return !too_slow_.empty(); }));
  EXPECT_THAT(too_slow_, ElementsAre("slow"));
  EXPECT_THAT(begun_, ElementsAre("slow", "next"));
}

TEST_F(ReadSchedulerTest, ATurnMayOutliveTheTurns) {
  Make({.at_once = 1, .of_host = 1, .patience = std::chrono::hours(1)});
  const Turn reads = Ask(kHere, "a"), waits = Ask(kHere, "b");
  turns_.reset();
}

}  // namespace
}  // namespace muster::rendezvous
