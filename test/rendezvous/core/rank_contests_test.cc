#include "rendezvous/core/job/roster.h"

#include <optional>

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

constexpr AttendeeId kHolder = 7;

JoinRequest Request(const char* node) {
  JoinRequest request;
  request.node.node_id = node;
  return request;
}

std::optional<AttendeeId> HolderStays(const JoinRequest&) {
  return kHolder;
}
std::optional<AttendeeId> HolderIsGone(const JoinRequest&) {
  return std::nullopt;
}

TEST(RankContestsTest, NewcomerWaitsUntilTheHolderIsGone) {
  RankContests contests;
  contests.Open(1, Request("new"), kHolder);
  EXPECT_FALSE(contests.TakeDecided(0, HolderStays));
  const auto decided = contests.TakeDecided(0, HolderIsGone);
  ASSERT_TRUE(decided);
  EXPECT_EQ(decided->newcomer, 1u);
  EXPECT_EQ(decided->request.node.node_id, "new");
  EXPECT_EQ(decided->holder, std::nullopt);
  EXPECT_FALSE(contests.TakeDecided(0, HolderIsGone));
}

TEST(RankContestsTest, BeatThatWasLongOnItsWayProvesNothing) {
  RankContests contests;
  contests.Open(1, Request("new"), kHolder);
  contests.Witness(kHolder, {.number = 5, .heard = 4});
  EXPECT_FALSE(contests.TakeDecided(0, HolderStays));
  // Sent before the answer to 5 was heard.
  contests.Witness(kHolder, {.number = 6, .heard = 4});
  EXPECT_FALSE(contests.TakeDecided(0, HolderStays));
  contests.Witness(kHolder, {.number = 7, .heard = 5});
  const auto decided = contests.TakeDecided(0, HolderStays);
  ASSERT_TRUE(decided);
  EXPECT_EQ(decided->holder, kHolder);
}

TEST(RankContestsTest, BeatsOfOthersProveNothing) {
  RankContests contests;
  contests.Open(1, Request("new"), kHolder);
  contests.Witness(kHolder + 1, {.number = 5, .heard = 4});
  contests.Witness(kHolder + 1, {.number = 6, .heard = 5});
  EXPECT_FALSE(contests.TakeDecided(0, HolderStays));
}

TEST(RankContestsTest, EachIsTakenOnceInOrderOfConnections) {
  RankContests contests;
  contests.Open(2, Request("two"), kHolder);
  contests.Open(1, Request("one"), kHolder);
  contests.Open(3, Request("three"), kHolder);
  contests.Withdraw(3);
  EXPECT_EQ(contests.TakeDecided(0, HolderIsGone)->newcomer, 1u);
  // It asks again, and its turn in this pass is over.
  contests.Open(1, Request("one"), kHolder + 1);
  EXPECT_EQ(contests.TakeDecided(1, HolderIsGone)->newcomer, 2u);
  EXPECT_FALSE(contests.TakeDecided(2, HolderIsGone));
}

}  // namespace
}  // namespace muster::rendezvous
