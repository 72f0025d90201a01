// The DaemonLoop with a journal: it sends nothing that is not on disk, and continues from what is
// on disk.
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>

#include "absl/strings/match.h"
#include "rendezvous/fronts/daemon_loop.h"
#include "rendezvous/journal/journal.h"
#include "rendezvous/wire/wire.h"
#include "test/rendezvous/support/directive_text.h"
#include "test/rendezvous/support/fake_journal.h"
#include "test/rendezvous/support/join_request.h"
#include "test/support/run_until.h"

namespace muster::rendezvous {
namespace {

using test::RunUntil;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class DaemonLoopJournalTest : public ::testing::Test {
 protected:
  DaemonLoopJournalTest() {
    daemon_loop_.UseJournal(journal_, [this](const absl::Status& status) { fatal_ = status; });
  }

  AgentId Attach(const std::string& name) {
    return daemon_loop_.Attach([this, name](const Directive& directive) {
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
  // The status of a Set, once it is answered.
  std::optional<absl::Status> Set(const std::string& key, const std::string& value) {
    daemon_loop_.Call({.run_id = "job",
                       .body = [=](KeyValueStore& store) { return store.Set(key, value); },
                       .writes = true},
                      [this](CallId, const absl::Status& status) { answer_ = status; });
    return std::exchange(answer_, std::nullopt);
  }
  // Waits until everything is committed.
  void Settle() {
    for (Poll(); journal_.busy(); Poll()) journal_.End(absl::OkStatus());
  }

  boost::asio::io_context io_;
  FakeJournal journal_;
  DaemonLoop daemon_loop_{io_, nullptr, {.durable = true}};
  std::vector<std::string> log_;
  absl::Status fatal_;
  std::optional<absl::Status> answer_;
};

TEST_F(DaemonLoopJournalTest, NobodyIsToldBeforeItIsOnDisk) {
  const AgentId a = Attach("a");
  daemon_loop_.Hear(a, Request(1, 1));
  Poll();
  EXPECT_THAT(log_, IsEmpty());
  ASSERT_EQ(journal_.batches.size(), 1u);
  ASSERT_EQ(journal_.batches[0].jobs.size(), 1u);
  journal_.End(absl::OkStatus());
  EXPECT_THAT(log_, ElementsAre("a: welcome", "a: start"));
}

TEST_F(DaemonLoopJournalTest, OneCommitHoldsAllOfATurn) {
  for (int i = 1; i <= 5; ++i) daemon_loop_.Hear(Attach("n"), Request(i, 5));
  Poll();
  EXPECT_EQ(journal_.batches.size(), 1u);
  journal_.End(absl::OkStatus());
  EXPECT_EQ(log_.size(), 10u);
}

TEST_F(DaemonLoopJournalTest, KeepAlivesAreAnsweredWhileTheDiskIsSlow) {
  const AgentId a = Attach("a");
  daemon_loop_.Hear(a, Request(1, 2));
  Settle();
  log_.clear();
  daemon_loop_.Hear(Attach("b"), Request(2, 2));
  Poll();
  ASSERT_TRUE(journal_.busy());
  daemon_loop_.Hear(a, KeepAlive{7});
  EXPECT_THAT(log_, ElementsAre("a: heard"));
}

TEST_F(DaemonLoopJournalTest, StoreIsAnsweredOnceItsWriteIsOnDisk) {
  daemon_loop_.Hear(Attach("a"), Request(1, 1));
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

// "The disk is full, and `muster kv set` only prints 'no answer within 10 s'."
TEST_F(DaemonLoopJournalTest, WriteThatFindsTheDiskFullIsAnsweredBeforeThereIsSpace) {
  daemon_loop_.Hear(Attach("a"), Request(1, 1));
  Settle();
  EXPECT_EQ(Set("key", "value"), std::nullopt);
  Poll();
  journal_.End(absl::ResourceExhaustedError("no space left on device"));
  ASSERT_TRUE(answer_.has_value());
  EXPECT_TRUE(absl::IsUnavailable(*answer_)) << *answer_;
  const auto next = Set("key", "value");
  ASSERT_TRUE(next.has_value());
  EXPECT_TRUE(absl::IsResourceExhausted(*next)) << *next;
  EXPECT_TRUE(daemon_loop_.disk_full());
  ASSERT_NE(daemon_loop_.journal(), nullptr);
  EXPECT_EQ(daemon_loop_.journal()->figures().failed, 1u);
  EXPECT_EQ(daemon_loop_.journal()->figures().commits.count(), 1u) << "the one before";
}

TEST_F(DaemonLoopJournalTest, FullDiskRefusesWritesAndIsTriedAgain) {
  daemon_loop_.Hear(Attach("a"), Request(1, 1));
  Poll();
  journal_.End(absl::ResourceExhaustedError("no space left on device"));
  EXPECT_THAT(log_, IsEmpty());
  const auto refused = Set("key", "value");
  ASSERT_TRUE(refused.has_value());
  EXPECT_TRUE(absl::IsResourceExhausted(*refused));
  EXPECT_TRUE(fatal_.ok());
  // "While etcd was full `muster status` showed a wait for nodes that no agent had been told
  // about."
  const auto told = [this] {
    const absl::StatusOr<JobSnapshot> job = daemon_loop_.Describe("job");
    return job.ok() && absl::StartsWith(job->sentence, "the daemon's disk, or its etcd");
  };
  EXPECT_TRUE(told());
  EXPECT_TRUE(daemon_loop_.List()->front().sentence == daemon_loop_.Describe("job")->sentence);
  ASSERT_TRUE(RunUntil(io_, [this] { return journal_.busy(); }));
  EXPECT_EQ(journal_.batches.back().jobs.size(), 1u) << "what was not written is written now";
  journal_.End(absl::OkStatus());
  EXPECT_THAT(log_, ElementsAre("a: welcome", "a: start"));
  EXPECT_FALSE(told());
}

TEST_F(DaemonLoopJournalTest, UnknownStateOfTheDiskIsFatalAndNobodyIsTold) {
  daemon_loop_.Hear(Attach("a"), Request(1, 1));
  Poll();
  journal_.End(absl::InternalError("fsync: Input/output error"));
  EXPECT_TRUE(absl::IsInternal(fatal_));
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(DaemonLoopJournalTest, JobThatIsNoMoreIsForgotten) {
  const AgentId a = Attach("a");
  daemon_loop_.Hear(a, Request(1, 1));
  Settle();
  daemon_loop_.Hear(a, Goodbye{});
  Poll();
  // Its end is remembered under its name; its store is not.
  ASSERT_EQ(journal_.batches.back().jobs.size(), 2u);
  EXPECT_EQ(journal_.batches.back().jobs[0].run_id, "job");
  EXPECT_EQ(journal_.batches.back().jobs[0].record, std::nullopt);
  const auto ended = RecordFromBytes(journal_.batches.back().jobs[1].record.value_or(""));
  ASSERT_TRUE(ended.ok());
  EXPECT_TRUE(ended->verdict.has_value());
  EXPECT_TRUE(ended->attendees.empty());
}

TEST_F(DaemonLoopJournalTest, WhatWasWrittenGoesOnInAnotherDriver) {
  const AgentId a = Attach("a");
  daemon_loop_.Hear(a, Request(1, 1));
  Settle();
  Set("key", "value");
  Settle();

  DaemonLoop next(io_, nullptr, {.durable = true});
  for (const JournalBatch& batch : journal_.batches) {
    for (const JournalBatch::Job& job : batch.jobs) {
      auto record = RecordFromBytes(job.record.value_or(""));
      ASSERT_TRUE(record.ok());
      // As if the daemon had been down for this long.
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

// A daemon that was told to stop cut off its agents, counted that against them while it shut down,
// and the next start had forgotten them.
TEST_F(DaemonLoopJournalTest, NothingThatHappensAfterFreezeIsWritten) {
  const AgentId a = Attach("a");
  daemon_loop_.Hear(a, Request(1, 1));
  Settle();
  const std::size_t written = journal_.batches.size();
  daemon_loop_.Freeze();
  daemon_loop_.Disconnected(a, "the daemon stopped");
  daemon_loop_.Hear(a, Goodbye{});
  Poll();
  EXPECT_EQ(journal_.batches.size(), written);
  EXPECT_EQ(daemon_loop_.agent_count(), 1);
}

}  // namespace
}  // namespace muster::rendezvous
