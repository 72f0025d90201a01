#include "rendezvous/core/values/quotas.h"

#include <gtest/gtest.h>

#include <chrono>

namespace muster::rendezvous {
namespace {

using std::chrono::seconds;
using CallVerdict = CallCounts::Verdict;

constexpr TimePoint kNow = TimePoint() + seconds(1000);

TEST(CallCountsTest, AConnectionATenantAndAllHaveLimits) {
  CallCounts counts({.of_connection = 2, .of_tenant = 3, .of_all = 4});
  EXPECT_EQ(counts.Begin(1, "alice", kNow), CallVerdict::kBegun);
  EXPECT_EQ(counts.Begin(1, "alice", kNow), CallVerdict::kBegun);
  EXPECT_EQ(counts.Begin(1, "alice", kNow), CallVerdict::kRefused) << "the connection's third";
  EXPECT_EQ(counts.Begin(2, "alice", kNow), CallVerdict::kBegun);
  EXPECT_EQ(counts.Begin(2, "alice", kNow), CallVerdict::kRefused) << "the tenant's fourth";
  EXPECT_EQ(counts.Begin(3, "alice", kNow), CallVerdict::kRefused) << "a connection that had none";
  EXPECT_EQ(counts.Begin(4, "bob", kNow), CallVerdict::kBegun);
  EXPECT_EQ(counts.Begin(5, "bob", kNow), CallVerdict::kRefused) << "the fifth of all";
  EXPECT_EQ(counts.under_way(), 4u);
  EXPECT_EQ(counts.under_way("alice"), 3u);
  EXPECT_EQ(counts.refused(), 4u);
  EXPECT_EQ(counts.refused_by_limit().of_connection, 1u);
  EXPECT_EQ(counts.refused_by_limit().of_tenant, 2u);
  EXPECT_EQ(counts.refused_by_limit().of_all, 1u);
}

TEST(CallCountsTest, WhatHasEndedMakesRoom) {
  CallCounts counts({.of_connection = 1, .of_tenant = 1, .of_all = 1});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(counts.Begin(1, "alice", kNow), CallVerdict::kBegun);
    EXPECT_EQ(counts.Begin(2, "bob", kNow), CallVerdict::kRefused);
    counts.End(1);
    EXPECT_EQ(counts.under_way(), 0u);
    EXPECT_EQ(counts.under_way("alice"), 0u);
  }
}

TEST(CallCountsTest, TheOnlyUserMayHaveAll) {
  CallCounts counts({.of_connection = 9, .of_tenant = 1, .of_all = 2});
  EXPECT_EQ(counts.Begin(1, "", kNow), CallVerdict::kBegun);
  EXPECT_EQ(counts.Begin(1, "", kNow), CallVerdict::kBegun);
  EXPECT_EQ(counts.Begin(1, "", kNow), CallVerdict::kRefused);
}

TEST(CallCountsTest, ACallThatLingersCountsUntilItsTime) {
  CallCounts counts({.of_connection = 2, .of_tenant = 2, .of_all = 2});
  EXPECT_EQ(counts.Begin(1, "alice", kNow), CallVerdict::kBegun);
  EXPECT_EQ(counts.Begin(1, "alice", kNow), CallVerdict::kBegun);
  counts.EndAt(1, kNow + seconds(1));
  counts.EndAt(1, kNow + seconds(2));
  EXPECT_EQ(counts.Begin(2, "alice", kNow), CallVerdict::kRefused);
  EXPECT_EQ(counts.under_way("alice"), 2u);
  EXPECT_EQ(counts.Begin(2, "alice", kNow + seconds(1)), CallVerdict::kBegun);
  EXPECT_EQ(counts.Begin(2, "bob", kNow + seconds(1)), CallVerdict::kRefused)
      << "one of each still counts";
  counts.Settle(kNow + seconds(2));
  counts.End(2);
  EXPECT_EQ(counts.under_way(), 0u);
  EXPECT_EQ(counts.under_way("alice"), 0u);
}

TEST(CallCountsTest, AConnectionThatGoesOnAtItsOwnLimitIsAFlood) {
  CallCounts counts({.of_connection = 1, .refused_of_connection = 2, .of_tenant = 2, .of_all = 9});
  EXPECT_EQ(counts.Begin(1, "alice", kNow), CallVerdict::kBegun);
  EXPECT_EQ(counts.PeerOf(1), "");
  EXPECT_EQ(counts.Begin(2, "alice", kNow), CallVerdict::kBegun);
  EXPECT_FALSE(counts.ComesFrom(2, "there"));
  EXPECT_EQ(counts.Begin(2, "alice", kNow), CallVerdict::kRefused);
  EXPECT_EQ(counts.Begin(2, "alice", kNow), CallVerdict::kFlood);
  EXPECT_EQ(counts.Begin(2, "alice", kNow), CallVerdict::kRefused) << "said once";
  EXPECT_EQ(counts.PeerOf(2), "there");
  EXPECT_TRUE(counts.ComesFrom(2, "elsewhere"));
  EXPECT_EQ(counts.PeerOf(2), "there");
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(counts.Begin(3, "alice", kNow), CallVerdict::kRefused)
        << "others have what it may have";
  }
  counts.End(2);
  EXPECT_EQ(counts.PeerOf(2), "");
  EXPECT_EQ(counts.Begin(2, "alice", kNow), CallVerdict::kBegun);
  EXPECT_EQ(counts.Begin(2, "alice", kNow), CallVerdict::kRefused) << "all over again";
}

TEST(CallCountsTest, RefusalsAreToldOnceOfTheirConnection) {
  CallCounts counts({.of_connection = 1, .of_tenant = 9, .of_all = 9});
  EXPECT_EQ(counts.Begin(1, "", kNow), CallVerdict::kBegun);
  EXPECT_EQ(counts.Begin(2, "", kNow), CallVerdict::kBegun);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(counts.Begin(1, "", kNow), CallVerdict::kRefused);
  EXPECT_EQ(counts.TakeRefused(2), 0u);
  EXPECT_EQ(counts.TakeRefused(1), 5u);
  EXPECT_EQ(counts.TakeRefused(1), 0u);
  EXPECT_EQ(counts.TakeRefused(77), 0u);
  EXPECT_EQ(counts.refused(), 5u);
}

}  // namespace
}  // namespace muster::rendezvous
