#include "rendezvous/core/call_counts.h"

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

TEST(CallCountsTest, AConnectionATenantAndAllHaveLimits) {
  CallCounts counts({.of_connection = 2, .of_tenant = 3, .of_all = 4});
  EXPECT_TRUE(counts.Begin(1, "alice"));
  EXPECT_TRUE(counts.Begin(1, "alice"));
  EXPECT_FALSE(counts.Begin(1, "alice")) << "the connection's third";
  EXPECT_TRUE(counts.Begin(2, "alice"));
  EXPECT_FALSE(counts.Begin(2, "alice")) << "the tenant's fourth";
  EXPECT_FALSE(counts.Begin(3, "alice")) << "a connection that had none";
  EXPECT_TRUE(counts.Begin(4, "bob"));
  EXPECT_FALSE(counts.Begin(5, "bob")) << "the fifth of all";
  EXPECT_EQ(counts.under_way(), 4u);
  EXPECT_EQ(counts.under_way("alice"), 3u);
  EXPECT_EQ(counts.refused(), 4u);
}

TEST(CallCountsTest, WhatHasEndedMakesRoom) {
  CallCounts counts({.of_connection = 1, .of_tenant = 1, .of_all = 1});
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(counts.Begin(1, "alice"));
    EXPECT_FALSE(counts.Begin(2, "bob"));
    counts.End(1);
    EXPECT_EQ(counts.under_way(), 0u);
    EXPECT_EQ(counts.under_way("alice"), 0u);
  }
}

TEST(CallCountsTest, TheOnlyUserMayHaveAll) {
  CallCounts counts({.of_connection = 9, .of_tenant = 1, .of_all = 2});
  EXPECT_TRUE(counts.Begin(1, ""));
  EXPECT_TRUE(counts.Begin(1, ""));
  EXPECT_FALSE(counts.Begin(1, ""));
}

TEST(CallCountsTest, ACallThatResumesCountsAlsoBeyondTheLimits) {
  CallCounts counts({.of_connection = 1, .of_tenant = 1, .of_all = 1});
  EXPECT_TRUE(counts.Begin(1, "alice"));
  counts.End(1);
  EXPECT_TRUE(counts.Begin(2, "alice"));
  counts.Resume(1, "alice");
  EXPECT_EQ(counts.under_way(), 2u);
  EXPECT_FALSE(counts.Begin(3, "alice"));
  counts.End(1);
  counts.End(2);
  EXPECT_EQ(counts.under_way(), 0u);
}

TEST(CallCountsTest, RefusalsAreToldOnceOfTheirConnection) {
  CallCounts counts({.of_connection = 1, .of_tenant = 9, .of_all = 9});
  EXPECT_TRUE(counts.Begin(1, ""));
  EXPECT_TRUE(counts.Begin(2, ""));
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(counts.Begin(1, ""));
  EXPECT_EQ(counts.TakeRefused(2), 0u);
  EXPECT_EQ(counts.TakeRefused(1), 5u);
  EXPECT_EQ(counts.TakeRefused(1), 0u);
  EXPECT_EQ(counts.TakeRefused(77), 0u);
  EXPECT_EQ(counts.refused(), 5u);
}

}  // namespace
}  // namespace muster::rendezvous
