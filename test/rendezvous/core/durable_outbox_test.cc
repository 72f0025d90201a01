// OutboundMessages and changes are named by letters; after each step the test checks what may be
// sent.
#include "rendezvous/core/durable_outbox.h"

#include <gtest/gtest.h>

#include <string>

namespace muster::rendezvous {
namespace {

void PutAnswer(DurableOutbox& durable_outbox, char name) {
  durable_outbox.Put(StoreAnswer{static_cast<CallId>(name), {}});
}

std::string TakeAllMessages(DurableOutbox& durable_outbox) {
  std::string all;
  while (const std::optional<OutboundMessage> message = durable_outbox.Take()) {
    if (const auto* const answer = std::get_if<StoreAnswer>(&*message)) {
      all += static_cast<char>(answer->call);
    } else {
      all += '*';
    }
  }
  return all;
}

TEST(DurableOutboxTest, WithoutAJournalEverythingMayBeTold) {
  DurableOutbox durable_outbox(false);
  durable_outbox.JobChanged("j");
  durable_outbox.StoreChanged("j", {"k"});
  durable_outbox.JobForgotten("j");
  PutAnswer(durable_outbox, 'a');
  EXPECT_FALSE(durable_outbox.NeedsCommit());
  EXPECT_EQ(TakeAllMessages(durable_outbox), "a");
  EXPECT_TRUE(durable_outbox.idle());
}

TEST(DurableOutboxTest, WhatFollowsFromAChangeWaitsForItsCommit) {
  DurableOutbox durable_outbox(true);
  PutAnswer(durable_outbox, 'a');
  durable_outbox.JobChanged("j");
  PutAnswer(durable_outbox, 'b');
  EXPECT_EQ(TakeAllMessages(durable_outbox), "a");
  EXPECT_TRUE(durable_outbox.NeedsCommit());
  EXPECT_EQ(durable_outbox.BeginCommit().jobs, std::set<std::string>({"j"}));
  durable_outbox.StoreChanged("j", {"k"});
  PutAnswer(durable_outbox, 'c');
  durable_outbox.Committed();
  EXPECT_EQ(TakeAllMessages(durable_outbox), "b");
  EXPECT_EQ(durable_outbox.untold(), 1u);
  EXPECT_EQ(durable_outbox.BeginCommit().keys.at("j"), std::set<std::string>({"k"}));
  durable_outbox.Committed();
  EXPECT_EQ(TakeAllMessages(durable_outbox), "c");
  EXPECT_TRUE(durable_outbox.idle());
}

TEST(DurableOutboxTest, AcknowledgementsOvertakeASlowDisk) {
  DurableOutbox durable_outbox(true);
  durable_outbox.JobChanged("j");
  PutAnswer(durable_outbox, 'a');
  durable_outbox.Put(Outgoing{7, Heard{3}});
  EXPECT_EQ(TakeAllMessages(durable_outbox), "*");
}

TEST(DurableOutboxTest, FullDiskIsTriedAgainWithWhatHasChangedByThen) {
  DurableOutbox durable_outbox(true);
  durable_outbox.JobChanged("j");
  durable_outbox.StoreChanged("j", {"k"});
  durable_outbox.Put(Outgoing{7, Assignment{}});
  durable_outbox.BeginCommit();
  durable_outbox.JobChanged("i");
  durable_outbox.DiskFull();
  EXPECT_TRUE(durable_outbox.full());
  EXPECT_EQ(TakeAllMessages(durable_outbox), "");
  EXPECT_EQ(durable_outbox.untold(), 1u);
  ASSERT_TRUE(durable_outbox.NeedsCommit());
  const Changes& again = durable_outbox.BeginCommit();
  EXPECT_EQ(again.jobs, std::set<std::string>({"i", "j"}));
  EXPECT_EQ(again.keys.size(), 1u);
  durable_outbox.Committed();
  EXPECT_FALSE(durable_outbox.full());
  EXPECT_EQ(TakeAllMessages(durable_outbox), "*");
}

// "The disk is full, and `muster kv set` only prints 'no answer within 10 s'."
TEST(DurableOutboxTest, AnswersDoNotWaitForRoomOnTheDisk) {
  DurableOutbox durable_outbox(true);
  durable_outbox.StoreChanged("j", {"k"});
  PutAnswer(durable_outbox, 'a');
  durable_outbox.Put(StoreAnswer{'w', {}, /*patient=*/true});
  durable_outbox.BeginCommit();
  EXPECT_EQ(TakeAllMessages(durable_outbox), "");
  durable_outbox.DiskFull();
  const std::optional<OutboundMessage> told = durable_outbox.Take();
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(std::get<StoreAnswer>(*told).call, CallId{'a'});
  const absl::Status& status = std::get<StoreAnswer>(*told).status;
  EXPECT_TRUE(absl::IsUnavailable(status));
  // "The disk has plenty of space": it was etcd that had none.
  EXPECT_NE(status.message().find("or its etcd"), std::string_view::npos);
  // Nor do those that come now.
  PutAnswer(durable_outbox, 'b');
  EXPECT_EQ(TakeAllMessages(durable_outbox), "b");
  EXPECT_EQ(durable_outbox.untold(), 1u) << "who came to wait waits";
  durable_outbox.BeginCommit();
  durable_outbox.Committed();
  PutAnswer(durable_outbox, 'c');
  EXPECT_EQ(TakeAllMessages(durable_outbox), "wc");
  EXPECT_TRUE(durable_outbox.idle());
}

TEST(DurableOutboxTest, JobForgottenWhileItsChangesFoundNoRoomIsForgotten) {
  DurableOutbox durable_outbox(true);
  durable_outbox.JobChanged("j");
  durable_outbox.StoreChanged("j", {"k"});
  durable_outbox.BeginCommit();
  durable_outbox.JobForgotten("j");
  durable_outbox.DiskFull();
  const Changes& again = durable_outbox.BeginCommit();
  EXPECT_EQ(again.forgotten, std::set<std::string>({"j"}));
  EXPECT_TRUE(again.jobs.empty());
  EXPECT_TRUE(again.keys.empty());
}

TEST(DurableOutboxTest, JobBegunAnewIsForgottenFirst) {
  DurableOutbox durable_outbox(true);
  durable_outbox.JobForgotten("j");
  durable_outbox.JobChanged("j");
  const Changes& changes = durable_outbox.BeginCommit();
  EXPECT_EQ(changes.forgotten, std::set<std::string>({"j"}));
  EXPECT_EQ(changes.jobs, std::set<std::string>({"j"}));
}

}  // namespace
}  // namespace muster::rendezvous
