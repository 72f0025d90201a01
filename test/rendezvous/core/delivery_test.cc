// Tellings and changes are named by letters; after each step the test checks what may be told.
#include "rendezvous/core/delivery.h"

#include <gtest/gtest.h>

#include <string>

namespace muster::rendezvous {
namespace {

void PutAnswer(Delivery& delivery, char name) {
  delivery.Put(StoreAnswer{static_cast<CallId>(name), {}});
}

std::string TakeAll(Delivery& delivery) {
  std::string all;
  while (const std::optional<Telling> telling = delivery.Take()) {
    if (const auto* const answer = std::get_if<StoreAnswer>(&*telling)) {
      all += static_cast<char>(answer->call);
    } else {
      all += '*';
    }
  }
  return all;
}

TEST(DeliveryTest, WithoutAJournalEverythingMayBeTold) {
  Delivery delivery(false);
  delivery.JobChanged("j");
  delivery.StoreChanged("j", {"k"});
  delivery.JobForgotten("j");
  PutAnswer(delivery, 'a');
  EXPECT_FALSE(delivery.NeedsCommit());
  EXPECT_EQ(TakeAll(delivery), "a");
  EXPECT_TRUE(delivery.idle());
}

TEST(DeliveryTest, WhatFollowsFromAChangeWaitsForItsCommit) {
  Delivery delivery(true);
  PutAnswer(delivery, 'a');
  delivery.JobChanged("j");
  PutAnswer(delivery, 'b');
  EXPECT_EQ(TakeAll(delivery), "a");
  EXPECT_TRUE(delivery.NeedsCommit());
  EXPECT_EQ(delivery.BeginCommit().jobs, std::set<std::string>({"j"}));
  delivery.StoreChanged("j", {"k"});
  PutAnswer(delivery, 'c');
  delivery.Committed();
  EXPECT_EQ(TakeAll(delivery), "b");
  EXPECT_EQ(delivery.untold(), 1u);
  EXPECT_EQ(delivery.BeginCommit().keys.at("j"), std::set<std::string>({"k"}));
  delivery.Committed();
  EXPECT_EQ(TakeAll(delivery), "c");
  EXPECT_TRUE(delivery.idle());
}

TEST(DeliveryTest, AcknowledgementsOvertakeASlowDisk) {
  Delivery delivery(true);
  delivery.JobChanged("j");
  PutAnswer(delivery, 'a');
  delivery.Put(Outgoing{7, Heard{3}});
  EXPECT_EQ(TakeAll(delivery), "*");
}

TEST(DeliveryTest, FullDiskIsTriedAgainWithWhatHasChangedByThen) {
  Delivery delivery(true);
  delivery.JobChanged("j");
  delivery.StoreChanged("j", {"k"});
  delivery.Put(Outgoing{7, Assignment{}});
  delivery.BeginCommit();
  delivery.JobChanged("i");
  delivery.DiskFull();
  EXPECT_TRUE(delivery.full());
  EXPECT_EQ(TakeAll(delivery), "");
  EXPECT_EQ(delivery.untold(), 1u);
  ASSERT_TRUE(delivery.NeedsCommit());
  const Changes& again = delivery.BeginCommit();
  EXPECT_EQ(again.jobs, std::set<std::string>({"i", "j"}));
  EXPECT_EQ(again.keys.size(), 1u);
  delivery.Committed();
  EXPECT_FALSE(delivery.full());
  EXPECT_EQ(TakeAll(delivery), "*");
}

// "The disk is full, and all that `muster kv set` says is 'no answer within 10 s'."
TEST(DeliveryTest, AnswersDoNotWaitForRoomOnTheDisk) {
  Delivery delivery(true);
  delivery.StoreChanged("j", {"k"});
  PutAnswer(delivery, 'a');
  delivery.Put(StoreAnswer{'w', {}, /*patient=*/true});
  delivery.BeginCommit();
  EXPECT_EQ(TakeAll(delivery), "");
  delivery.DiskFull();
  const std::optional<Telling> told = delivery.Take();
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(std::get<StoreAnswer>(*told).call, CallId{'a'});
  EXPECT_TRUE(absl::IsUnavailable(std::get<StoreAnswer>(*told).status));
  // Nor do those that come now.
  PutAnswer(delivery, 'b');
  EXPECT_EQ(TakeAll(delivery), "b");
  EXPECT_EQ(delivery.untold(), 1u) << "who came to wait waits";
  delivery.BeginCommit();
  delivery.Committed();
  PutAnswer(delivery, 'c');
  EXPECT_EQ(TakeAll(delivery), "wc");
  EXPECT_TRUE(delivery.idle());
}

TEST(DeliveryTest, JobForgottenWhileItsChangesFoundNoRoomIsForgotten) {
  Delivery delivery(true);
  delivery.JobChanged("j");
  delivery.StoreChanged("j", {"k"});
  delivery.BeginCommit();
  delivery.JobForgotten("j");
  delivery.DiskFull();
  const Changes& again = delivery.BeginCommit();
  EXPECT_EQ(again.forgotten, std::set<std::string>({"j"}));
  EXPECT_TRUE(again.jobs.empty());
  EXPECT_TRUE(again.keys.empty());
}

TEST(DeliveryTest, JobBegunAnewIsForgottenFirst) {
  Delivery delivery(true);
  delivery.JobForgotten("j");
  delivery.JobChanged("j");
  const Changes& changes = delivery.BeginCommit();
  EXPECT_EQ(changes.forgotten, std::set<std::string>({"j"}));
  EXPECT_EQ(changes.jobs, std::set<std::string>({"j"}));
}

}  // namespace
}  // namespace muster::rendezvous
