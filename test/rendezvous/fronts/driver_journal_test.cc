// The Driver with a journal: it says nothing that is not on disk, and continues from what is on
// disk.
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>

#include "rendezvous/fronts/driver.h"
#include "rendezvous/journal/journal.h"
#include "rendezvous/wire/record_wire.h"
#include "test/rendezvous/support/directive_text.h"
#include "test/rendezvous/support/fake_journal.h"
#include "test/rendezvous/support/join_request.h"
#include "test/support/run_until.h"

namespace muster::rendezvous {
namespace {

using test::RunUntil;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class DriverJournalTest : public ::testing::Test {
 protected:
  DriverJournalTest() {
    driver_.UseJournal(journal_, [this](const absl::Status& status) { fatal_ = status; });
  }

  AgentId Attach(const std::string& name) {
    return driver_.Attach([this, name](const Directive& directive) {
      const std::string text = DirectiveText(directive);
      log_.push_back(name + ": " + text.substr(0, text.find_first_of(" :")));
    });
  }
  JoinRequest Request(int index, int nodes) {
    JoinRequest request = RequestFor(index, nodes);
    request.session = "session-" + std::to_string(index);
    return request;
  }
  void Poll() {
    io_.restart();
    io_.poll();
  }
  // The status of a Set, as soon as it is told.
  std::optional<absl::Status> Set(const std::string& key, const std::string& value) {
    driver_.Call({.run_id = "job",
                  .body = [=](KeyValueStore& store) { return store.Set(key, value); },
                  .writes = true},
                 [this](CallId, const absl::Status& status) { answer_ = status; });
    return std::exchange(answer_, std::nullopt);
  }
  // Whatever is to be committed is.
  void Settle() {
    for (Poll(); journal_.busy(); Poll()) journal_.End(absl::OkStatus());
  }

  boost::asio::io_context io_;
  FakeJournal journal_;
  Driver driver_{io_, nullptr, {.durable = true}};
  std::vector<std::string> log_;
  absl::Status fatal_;
  std::optional<absl::Status> answer_;
};

TEST_F(DriverJournalTest, NobodyIsToldBeforeItIsOnDisk) {
  const AgentId a = Attach("a");
  driver_.Hear(a, Request(1, 1));
  Poll();
  EXPECT_THAT(log_, IsEmpty());
  ASSERT_EQ(journal_.batches.size(), 1u);
  ASSERT_EQ(journal_.batches[0].jobs.size(), 1u);
  journal_.End(absl::OkStatus());
  EXPECT_THAT(log_, ElementsAre("a: welcome", "a: start"));
}

TEST_F(DriverJournalTest, OneCommitHoldsAllOfATurn) {
  for (int i = 1; i <= 5; ++i) driver_.Hear(Attach("n"), Request(i, 5));
  Poll();
  EXPECT_EQ(journal_.batches.size(), 1u);
  journal_.End(absl::OkStatus());
  EXPECT_EQ(log_.size(), 10u);
}

TEST_F(DriverJournalTest, KeepAlivesAreAnsweredWhileTheDiskIsSlow) {
  const AgentId a = Attach("a");
  driver_.Hear(a, Request(1, 2));
  Settle();
  log_.clear();
  driver_.Hear(Attach("b"), Request(2, 2));
  Poll();
  ASSERT_TRUE(journal_.busy());
  driver_.Hear(a, KeepAlive{7});
  EXPECT_THAT(log_, ElementsAre("a: heard"));
}

TEST_F(DriverJournalTest, StoreIsAnsweredOnceItsWriteIsOnDisk) {
  driver_.Hear(Attach("a"), Request(1, 1));
  Settle();
  EXPECT_EQ(Set("key", "value"), std::nullopt);
  Poll();
  EXPECT_EQ(answer_, std::nullopt);
  const JournalBatch& batch = journal_.batches.back();
  ASSERT_EQ(batch.entries.size(), 1u);
  EXPECT_EQ(batch.entries[0].key, "key");
  EXPECT_EQ(batch.entries[0].value, "value");
  journal_.End(absl::OkStatus());
  EXPECT_EQ(answer_, absl::OkStatus());
}

// "The disk is full, and all that `muster kv set` says is 'no answer within 10 s'."
TEST_F(DriverJournalTest, WriteThatFindsTheDiskFullIsAnsweredBeforeThereIsSpace) {
  driver_.Hear(Attach("a"), Request(1, 1));
  Settle();
  EXPECT_EQ(Set("key", "value"), std::nullopt);
  Poll();
  journal_.End(absl::ResourceExhaustedError("no space left on device"));
  ASSERT_TRUE(answer_.has_value());
  EXPECT_TRUE(absl::IsUnavailable(*answer_)) << *answer_;
  const auto next = Set("key", "value");
  ASSERT_TRUE(next.has_value());
  EXPECT_TRUE(absl::IsResourceExhausted(*next)) << *next;
  EXPECT_TRUE(driver_.disk_full());
  ASSERT_NE(driver_.journal(), nullptr);
  EXPECT_EQ(driver_.journal()->figures().failed, 1u);
  EXPECT_EQ(driver_.journal()->figures().commits.count(), 1u) << "the one before";
}

TEST_F(DriverJournalTest, FullDiskRefusesWritesAndIsTriedAgain) {
  driver_.Hear(Attach("a"), Request(1, 1));
  Poll();
  journal_.End(absl::ResourceExhaustedError("no space left on device"));
  EXPECT_THAT(log_, IsEmpty());
  const auto refused = Set("key", "value");
  ASSERT_TRUE(refused.has_value());
  EXPECT_TRUE(absl::IsResourceExhausted(*refused));
  EXPECT_TRUE(fatal_.ok());
  ASSERT_TRUE(RunUntil(io_, [this] { return journal_.busy(); }));
  EXPECT_EQ(journal_.batches.back().jobs.size(), 1u) << "what was not written is written now";
  journal_.End(absl::OkStatus());
  EXPECT_THAT(log_, ElementsAre("a: welcome", "a: start"));
}

TEST_F(DriverJournalTest, UnknownStateOfTheDiskIsFatalAndNobodyIsTold) {
  driver_.Hear(Attach("a"), Request(1, 1));
  Poll();
  journal_.End(absl::InternalError("fsync: Input/output error"));
  EXPECT_TRUE(absl::IsInternal(fatal_));
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(DriverJournalTest, JobThatIsNoMoreIsForgotten) {
  const AgentId a = Attach("a");
  driver_.Hear(a, Request(1, 1));
  Settle();
  driver_.Hear(a, Goodbye{});
  Poll();
  // How it ended is remembered under its name; its store is not.
  ASSERT_EQ(journal_.batches.back().jobs.size(), 2u);
  EXPECT_EQ(journal_.batches.back().jobs[0].run_id, "job");
  EXPECT_EQ(journal_.batches.back().jobs[0].record, std::nullopt);
  const auto ended = RecordFromBytes(journal_.batches.back().jobs[1].record.value_or(""));
  ASSERT_TRUE(ended.ok());
  EXPECT_TRUE(ended->verdict.has_value());
  EXPECT_TRUE(ended->attendees.empty());
}

TEST_F(DriverJournalTest, WhatWasWrittenGoesOnInAnotherDriver) {
  const AgentId a = Attach("a");
  driver_.Hear(a, Request(1, 1));
  Settle();
  Set("key", "value");
  Settle();

  Driver next(io_, nullptr, {.durable = true});
  for (const JournalBatch& batch : journal_.batches) {
    for (const JournalBatch::Job& job : batch.jobs) {
      auto record = RecordFromBytes(job.record.value_or(""));
      ASSERT_TRUE(record.ok());
      // As if the daemon had been away for so long.
      record->history.true_at_ms -= 10'000;
      next.Restore(*record);
    }
    for (const auto& entry : batch.entries) {
      next.RestoreEntry(entry.run_id, entry.key, entry.value.value_or(""));
    }
  }
  EXPECT_EQ(next.agent_count(), 1);
  EXPECT_GE(next.Describe("job")->age, std::chrono::seconds(10));
  EXPECT_GE(next.Describe("job")->rounds.at(0).ran, std::chrono::seconds(10));
  std::string value;
  const auto read = [&value](KeyValueStore& store) {
    value = *store.Get("key");
    return absl::OkStatus();
  };
  next.Call({.run_id = "job", .body = read}, [](CallId, const absl::Status&) {});
  EXPECT_EQ(value, "value");
  std::vector<std::string> heard;
  const AgentId back = next.Attach([&](const Directive& directive) {
    const std::string text = DirectiveText(directive);
    heard.push_back(text.substr(0, text.find_first_of(" :")));
  });
  next.Hear(back, Resume{"session-1", 1});
  EXPECT_THAT(heard, ElementsAre("welcome", "start"));
}

// A daemon that was told to stop cut its agents off, held that against them while it ended, and the
// next start had forgotten them.
TEST_F(DriverJournalTest, NothingThatHappensAfterFreezeIsWritten) {
  const AgentId a = Attach("a");
  driver_.Hear(a, Request(1, 1));
  Settle();
  const std::size_t written = journal_.batches.size();
  driver_.Freeze();
  driver_.Disconnected(a, "the daemon ended");
  driver_.Hear(a, Goodbye{});
  Poll();
  EXPECT_EQ(journal_.batches.size(), written);
  EXPECT_EQ(driver_.agent_count(), 1);
}

}  // namespace
}  // namespace muster::rendezvous
