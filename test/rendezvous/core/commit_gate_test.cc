#include "rendezvous/core/durable_outbox.h"

#include <gtest/gtest.h>

#include <string>

namespace muster::rendezvous {
namespace {

std::string TakeAll(CommitGate<char>& gate) {
  std::string all;
  while (const std::optional<char> item = gate.Take()) all += *item;
  return all;
}

TEST(CommitGateTest, WithoutChangesNothingWaits) {
  CommitGate<char> gate;
  gate.Put('a');
  EXPECT_EQ(TakeAll(gate), "a");
  EXPECT_FALSE(gate.NeedsCommit());
  EXPECT_TRUE(gate.idle());
}

TEST(CommitGateTest, WhatFollowsFromAChangeWaitsForItsCommit) {
  CommitGate<char> gate;
  gate.Put('a');
  gate.Change();
  gate.Put('b');
  gate.Put('c');
  EXPECT_EQ(TakeAll(gate), "a");
  EXPECT_TRUE(gate.NeedsCommit());
  gate.Begin();
  EXPECT_FALSE(gate.NeedsCommit());
  EXPECT_EQ(TakeAll(gate), "");
  gate.Committed();
  EXPECT_EQ(TakeAll(gate), "bc");
  EXPECT_TRUE(gate.idle());
}

TEST(CommitGateTest, OnlyWhatMayNotBeToldIsWithdrawn) {
  CommitGate<char> gate;
  gate.Put('a');
  gate.Change();
  for (const char item : {'b', 'A', 'c'}) gate.Put(item);
  const auto withdrawn = gate.Withdraw([](char item) { return item >= 'a'; });
  EXPECT_EQ(std::string(withdrawn.begin(), withdrawn.end()), "bc");
  EXPECT_EQ(TakeAll(gate), "a");
  gate.Begin();
  gate.Committed();
  EXPECT_EQ(TakeAll(gate), "A");
}

TEST(CommitGateTest, AChangeDuringACommitWaitsForTheNext) {
  CommitGate<char> gate;
  gate.Change();
  gate.Put('a');
  gate.Begin();
  gate.Put('b');
  gate.Change();
  gate.Put('c');
  gate.Committed();
  EXPECT_EQ(TakeAll(gate), "ab");
  EXPECT_TRUE(gate.NeedsCommit());
  gate.Begin();
  gate.Committed();
  EXPECT_EQ(TakeAll(gate), "c");
}

TEST(CommitGateTest, AFailedCommitReleasesNothingAndIsMadeAgain) {
  CommitGate<char> gate;
  gate.Change();
  gate.Put('a');
  gate.Begin();
  gate.Failed();
  EXPECT_EQ(TakeAll(gate), "");
  EXPECT_TRUE(gate.NeedsCommit());
  gate.Begin();
  gate.Committed();
  EXPECT_EQ(TakeAll(gate), "a");
}

}  // namespace
}  // namespace muster::rendezvous
