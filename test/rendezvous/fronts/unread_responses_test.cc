#include "rendezvous/fronts/flow_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/support/run_until.h"

namespace muster::rendezvous {
namespace {

using ::testing::ElementsAre;

class UnreadResponsesTest : public ::testing::Test {
 protected:
  boost::asio::io_context loop_;
  std::vector<std::string> dropped_;
  UnreadResponses answers_{loop_,
                           {.bytes = 100, .answers = 3, .patience = std::chrono::milliseconds(50)},
                           [this](const Peer& peer) { dropped_.push_back(peer.address); }};
};

TEST_F(UnreadResponsesTest, TheOldestMakesRoomWhenThereAreTooManyBytes) {
  answers_.Add({"a", 1}, 60);
  answers_.Add({"b", 1}, 40);
  EXPECT_THAT(dropped_, ElementsAre());
  answers_.Add({"c", 1}, 1);
  EXPECT_THAT(dropped_, ElementsAre("a"));
  EXPECT_EQ(answers_.dropped_for_bytes(), 1u);
  EXPECT_EQ(answers_.dropped_for_number(), 0u);
}

TEST_F(UnreadResponsesTest, WhatIsTakenCountsNoLonger) {
  for (int i = 0; i < 10; ++i) answers_.Taken(answers_.Add({"a", 1}, 90));
  EXPECT_THAT(dropped_, ElementsAre());
  EXPECT_EQ(answers_.bytes(), 0u);
}

// The bytes of a closed connection remain until gRPC frees them: no other connection may be closed
// because of them.
TEST_F(UnreadResponsesTest, NobodyIsEndedForWhoHasBeen) {
  const auto first = answers_.Add({"a", 1}, 90);
  answers_.Add({"b", 1}, 50);
  answers_.Add({"c", 1}, 50);
  EXPECT_THAT(dropped_, ElementsAre("a"));
  answers_.Taken(first);
  EXPECT_EQ(answers_.bytes(), 100u);
}

TEST_F(UnreadResponsesTest, OneThatIsLargerThanAllMayBeIsSentAllTheSame) {
  answers_.Add({"a", 1}, 1000);
  EXPECT_THAT(dropped_, ElementsAre());
}

// One host kept all others out with calls whose small answers it did not read: each kept its slot
// for as long as the host liked.
TEST_F(UnreadResponsesTest, TheOldestOfTooManySmallOnesAreEndedWhenTheyHaveHadTheirTime) {
  for (const char* peer : {"a", "b", "c", "d", "e"}) answers_.Add({peer, 1}, 0);
  EXPECT_THAT(dropped_, ElementsAre());
  EXPECT_TRUE(test::RunUntil(loop_, [&] { return dropped_.size() == 2; }));
  EXPECT_EQ(answers_.dropped_for_number(), 2u);
  EXPECT_THAT(dropped_, ElementsAre("a", "b"));
}

// Many calls wait for the same thing, and are answered at once.
TEST_F(UnreadResponsesTest, ManyThatAreTakenInTimeEndNobody) {
  std::vector<UnreadResponses::Id> ids;
  for (int i = 0; i < 100; ++i) ids.push_back(answers_.Add({"a", 1}, 0));
  for (const auto id : ids) answers_.Taken(id);
  loop_.run();
  EXPECT_THAT(dropped_, ElementsAre());
}

}  // namespace
}  // namespace muster::rendezvous
