// Calls have numbers, and their answers are compared as text such as "7 ok", in the order in which
// they are given.
#include "rendezvous/core/daemon_core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "test/rendezvous/support/join_request.h"

namespace muster::rendezvous {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr TimePoint kCallsStart{seconds(100)};

class StoreCallsTest : public ::testing::Test {
 protected:
  StoreCallsTest() {
    coordinator_.Hear(1, RequestFor(1, 1), kCallsStart);
    coordinator_.TakeOutbox();
  }

  void Set(CallId id, const std::string& key) {
    calls_.Call(id, {.run_id = "job",
                     .body = [key](KeyValueStore& store) { return store.Set(key, "v"); },
                     .writes = true});
  }
  void Wait(CallId id, const char* key, std::optional<TimePoint> deadline = {}) {
    calls_.Call(id, {.run_id = "job",
                     .body =
                         [this, id](KeyValueStore&) {
                           bodies_.push_back(id);
                           return absl::OkStatus();
                         },
                     .wait = StoreCall::Wait{{key}, deadline}});
  }
  void Meet(CallId id, std::uint64_t count, const char* caller = "",
            std::optional<TimePoint> deadline = {}) {
    calls_.Call(id, {.run_id = "job",
                     .body = [](KeyValueStore&) { return absl::OkStatus(); },
                     .arrival = Arrival{"b", count, caller, deadline}});
  }
  void Commit() {
    while (durable_outbox_.NeedsCommit()) {
      durable_outbox_.BeginCommit();
      durable_outbox_.Committed();
    }
  }
  std::vector<std::string> Told() {
    std::vector<std::string> told;
    while (const std::optional<OutboundMessage> message = durable_outbox_.Take()) {
      const auto& answer = std::get<StoreAnswer>(*message);
      told.push_back(absl::StrCat(
          answer.call, " ", answer.status.ok() ? "ok" : StatusCodeToString(answer.status.code())));
      last_message_ = std::string(answer.status.message());
    }
    return told;
  }

  Coordinator coordinator_{Coordinator::Options{.durable = true}};
  DurableOutbox durable_outbox_{true};
  StoreCalls calls_{coordinator_, durable_outbox_};
  std::vector<CallId> bodies_;
  std::string last_message_;
};

// Twenty thousand waiting calls, each naming a message full of keys, took all of a daemon's memory.
TEST_F(StoreCallsTest, WhatAllWaitingCallsNameHasALimit) {
  StoreCalls calls(coordinator_, durable_outbox_, 3 * 65 + 2 * 64 + 2);
  const auto wait = [&](CallId id, const char* key) {
    calls.Call(id, {.run_id = "job",
                    .body = [](KeyValueStore&) { return absl::OkStatus(); },
                    .wait = StoreCall::Wait{{key}, std::nullopt}});
  };
  const auto meet = [&](CallId id) {
    calls.Call(id, {.run_id = "job",
                    .body = [](KeyValueStore&) { return absl::OkStatus(); },
                    .arrival = Arrival{"b", 2, "c", kCallsStart + seconds(1)}});
  };
  wait(1, "a");
  wait(2, "b");
  wait(3, "c");
  meet(4);
  EXPECT_THAT(Told(), IsEmpty());
  wait(5, "d");
  EXPECT_THAT(Told(), ElementsAre("5 RESOURCE_EXHAUSTED"));
  // However a call ends, it makes room for another.
  calls.Cancel(1);
  wait(6, "d");
  calls.Call(7, {.run_id = "job",
                 .body = [](KeyValueStore& store) { return store.Set("b", "v"); },
                 .writes = true});
  Commit();
  EXPECT_THAT(Told(), ElementsAre("2 ok", "7 ok"));
  wait(8, "e");
  calls.Tick(kCallsStart + seconds(1));
  EXPECT_THAT(Told(), ElementsAre("4 DEADLINE_EXCEEDED"));
  meet(9);
  EXPECT_THAT(Told(), IsEmpty());
  calls.DropStore("job");
  EXPECT_EQ(Told().size(), 4u);
  for (CallId id = 10; id < 13; ++id) wait(id, "a");
  meet(13);
  EXPECT_THAT(Told(), IsEmpty());
}

TEST_F(StoreCallsTest, WaitIsAnsweredBeforeTheSetThatEndsIt) {
  Wait(1, "k");
  EXPECT_EQ(calls_.waiting(), 1u);
  Set(2, "k");
  EXPECT_THAT(Told(), IsEmpty()) << "the disk has not said yes";
  Commit();
  EXPECT_THAT(Told(), ElementsAre("1 ok", "2 ok"));
}

// The whole daemon hung when a call was cancelled at exactly this moment.
TEST_F(StoreCallsTest, CancelWhileTheAnswerWaitsForTheDiskIsInOrder) {
  Wait(1, "k");
  Set(2, "k");
  calls_.Cancel(1);
  calls_.Cancel(2);
  calls_.Cancel(2);
  Commit();
  EXPECT_THAT(Told(), ElementsAre("1 ok", "2 ok")) << "for nobody: whoever delivers knows";
  EXPECT_THAT(bodies_, ElementsAre(1));
}

TEST_F(StoreCallsTest, CancelledWaitIsNotWokenAndHoldsNothing) {
  Wait(1, "k");
  calls_.Cancel(1);
  EXPECT_EQ(calls_.waiting(), 0u);
  EXPECT_EQ(coordinator_.FindStore("job")->NumWaits(), 0u);
  Set(2, "k");
  Commit();
  EXPECT_THAT(Told(), ElementsAre("2 ok"));
  EXPECT_THAT(bodies_, IsEmpty());
}

TEST_F(StoreCallsTest, WaitThatIsInVainTimesOut) {
  Wait(1, "k", kCallsStart + seconds(5));
  Wait(2, "k", kCallsStart + seconds(9));
  EXPECT_EQ(calls_.NextDeadline(), kCallsStart + seconds(5));
  calls_.Tick(kCallsStart + seconds(6));
  EXPECT_THAT(Told(), ElementsAre("1 DEADLINE_EXCEEDED"));
  EXPECT_EQ(calls_.NextDeadline(), kCallsStart + seconds(9));
}

TEST_F(StoreCallsTest, BarrierCountsWhoWaitsAndLetsAllGoTogether) {
  Meet(1, 3);
  Meet(2, 3);
  calls_.Cancel(2);
  Meet(3, 3);
  Meet(4, 2);
  EXPECT_THAT(Told(), ElementsAre("4 FAILED_PRECONDITION"));
  Meet(5, 3);
  EXPECT_THAT(Told(), ElementsAre("1 ok", "3 ok", "5 ok"));
  EXPECT_EQ(calls_.waiting(), 0u);
  EXPECT_EQ(coordinator_.FindStore("job")->NumWaits(), 0u);
}

TEST_F(StoreCallsTest, BarrierThatIsInVainSaysHowManyWereThere) {
  Meet(1, 3, "", kCallsStart + seconds(5));
  Meet(2, 3, "");
  calls_.Tick(kCallsStart + seconds(5));
  const std::optional<OutboundMessage> message = durable_outbox_.Take();
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(std::get<StoreAnswer>(*message).status,
            absl::DeadlineExceededError("2 of 3 reached barrier 'b'"));
  EXPECT_EQ(calls_.waiting(), 1u);
}

TEST_F(StoreCallsTest, BarrierCallThatIsMadeAgainEndsTheFirst) {
  Meet(1, 2, "a");
  Meet(2, 2, "a");
  EXPECT_THAT(Told(), ElementsAre("1 ABORTED"));
  calls_.Cancel(1);
  Meet(3, 2, "b");
  EXPECT_THAT(Told(), ElementsAre("2 ok", "3 ok"));
}

TEST_F(StoreCallsTest, JobThatIsNoMoreEndsItsCalls) {
  Wait(1, "k");
  coordinator_.Hear(1, Goodbye{}, kCallsStart);
  ASSERT_THAT(coordinator_.TakeOutbox().forgotten_jobs, ElementsAre("job"));
  calls_.DropStore("job");
  calls_.Cancel(1);
  Wait(2, "k");
  EXPECT_THAT(Told(), ElementsAre("1 ABORTED", "2 NOT_FOUND"));
  EXPECT_THAT(last_message_, testing::StartsWith("the job has ended: job 'job' "))
      << "and not that there is no such job, which `muster status` lists";
}

// "The disk is full, and `muster kv set` only prints 'no answer within 10 s'."
TEST_F(StoreCallsTest, FullDiskRefusesWritesAtOnceAndLetsThoseWaitWhoWait) {
  Set(1, "k");
  durable_outbox_.BeginCommit();
  durable_outbox_.DiskFull();
  Set(2, "l");
  Wait(3, "k");
  // The first was executed, and will be on disk with the rest, unless the daemon dies before.
  EXPECT_THAT(Told(), ElementsAre("1 UNAVAILABLE", "2 RESOURCE_EXHAUSTED"));
  Commit();
  Set(4, "l");
  Commit();
  EXPECT_THAT(Told(), ElementsAre("3 ok", "4 ok"));
}

}  // namespace
}  // namespace muster::rendezvous
