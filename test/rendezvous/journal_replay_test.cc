// What a journal remembers is handed over in parts, and is all there in the end.
#include "rendezvous/server/tenant_openings.h"

#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "test/rendezvous/support/fake_journal.h"
#include "test/rendezvous/support/join_request.h"

namespace muster::rendezvous {
namespace {

class JournalReplayTest : public testing::Test {
 protected:
  // The record of a job of one node.
  std::string Record() {
    FakeJournal journal;
    DaemonLoop daemon_loop(io_, nullptr, {.durable = true});
    daemon_loop.UseJournal(journal, [](const absl::Status&) {});
    JoinRequest request = RequestFor(1, 1);
    request.session = "session";
    daemon_loop.Hear(daemon_loop.Attach([](const Directive&) {}), request);
    io_.restart();
    io_.poll();
    return journal.batches.at(0).jobs.at(0).record.value();
  }

  JournalContents Contents(int entries, std::size_t bytes_of_each) {
    JournalContents contents;
    contents.jobs.emplace_back("job", Record());
    for (int i = 0; i < entries; ++i) {
      contents.entries.push_back({"job", absl::StrCat("key", i), std::string(bytes_of_each, 'x')});
    }
    return contents;
  }

  // In how many parts, or why not.
  absl::StatusOr<int> Restore(JournalContents contents) {
    JournalReplay journal_replay(daemon_loop_, std::move(contents));
    for (int parts = 1;; ++parts) {
      const absl::StatusOr<bool> more = journal_replay.Go();
      if (!more.ok()) return more.status();
      if (!*more) return parts;
    }
  }

  std::int64_t Keys() {
    daemon_loop_.UseJournal(journal_, [](const absl::Status&) {});
    std::int64_t keys = -1;
    daemon_loop_.Call({.run_id = "job",
                       .body =
                           [&keys](KeyValueStore& store) {
                             keys = static_cast<std::int64_t>(store.NumKeys());
                             return absl::OkStatus();
                           }},
                      [](CallId, const absl::Status&) {});
    return keys;
  }

  boost::asio::io_context io_;
  FakeJournal journal_;
  DaemonLoop daemon_loop_{io_, nullptr, {.durable = true}};
};

// "With a million small keys a daemon that took over lost the lead at once."
TEST_F(JournalReplayTest, ManySmallEntriesAreHandedOverInParts) {
  const auto parts = Restore(Contents(35'000, 1));
  ASSERT_TRUE(parts.ok()) << parts.status();
  EXPECT_EQ(*parts, 4);
  EXPECT_EQ(daemon_loop_.job_count(), 1);
  EXPECT_EQ(Keys(), 35'000);
}

TEST_F(JournalReplayTest, SoAreAFewLargeOnes) {
  const auto parts = Restore(Contents(8, 600 << 10));
  ASSERT_TRUE(parts.ok()) << parts.status();
  EXPECT_EQ(*parts, 5);
  EXPECT_EQ(Keys(), 8);
}

TEST_F(JournalReplayTest, LittleIsHandedOverAtOnce) {
  const auto parts = Restore(Contents(100, 10));
  ASSERT_TRUE(parts.ok()) << parts.status();
  EXPECT_EQ(*parts, 1);
  EXPECT_EQ(Keys(), 100);
}

TEST_F(JournalReplayTest, WhatIsNoRecordOfAJobIsNotTakenForOne) {
  JournalContents contents = Contents(10, 1);
  contents.jobs[0].second = "x";
  EXPECT_TRUE(absl::IsDataLoss(Restore(std::move(contents)).status()));
  JournalContents twice = Contents(10, 1);
  twice.jobs.push_back(twice.jobs[0]);
  EXPECT_TRUE(absl::IsDataLoss(Restore(std::move(twice)).status()));
}

}  // namespace
}  // namespace muster::rendezvous
