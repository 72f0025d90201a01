// What a daemon that stands by knows, and when it may lead with that.
#include "rendezvous/etcd/journal_mirror.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "rendezvous/etcd/etcd_journal.h"
#include "rendezvous/etcd/journal_keys.h"
#include "rendezvous/etcd/journal_source.h"
#include "test/rendezvous/etcd/near_etcd.h"
#include "test/rendezvous/etcd/sim_etcd.h"
#include "test/rendezvous/simulation/process.h"
#include "test/rendezvous/simulation/sim_alarm.h"
#include "test/rendezvous/simulation/sim_clock.h"

namespace muster::rendezvous {
namespace {

using etcd::Delete;
using etcd::MemorySource;
using etcd::Put;

class JournalMirrorTest : public testing::Test {
 protected:
  // All that comes without any time's passing.
  void Run() { RunFor(std::chrono::milliseconds(1)); }
  void RunFor(Duration duration) {
    const TimePoint end = scheduler_.now() + duration;
    const auto is_over = std::make_shared<bool>(false);
    scheduler_.At(end, [is_over] { *is_over = true; });
    while (!*is_over) scheduler_.Step();
  }
  void FollowAll() {
    mirror_.Follow();
    Run();
  }
  void Do(std::vector<etcd::Operation> operations) {
    ASSERT_TRUE(etcd_.Apply({.then = std::move(operations)}).ok());
  }
  void Set(const std::string& key, const std::string& value) { Do({Put{key, value}}); }

  // Another daemon leads from now on.
  etcd::Fence Elect() {
    Do({Delete{"/m/leader"}});
    const auto elected = etcd_.Apply({.then = {Put{"/m/leader", "x"}}});
    return {"/m/leader", elected->revision};
  }

  // What it is given: nothing yet, or memory, or nullptr.
  using Given = std::optional<std::unique_ptr<MemorySource>>;
  void TakeOver(const etcd::Fence& fence) {
    mirror_.TakeOver(
        fence, [this](std::unique_ptr<MemorySource> memory) { given_.emplace(std::move(memory)); });
  }
  bool IsGivenAll() const {
    return given_ && *given_ != nullptr &&
           (*given_)->keys() == etcd_.Values(etcd::JournalKeys("/m").Everything());
  }
  // It is elected, knows of that, and leads.
  bool TakesOverWithAll() {
    const etcd::Fence fence = Elect();
    Run();
    TakeOver(fence);
    return IsGivenAll();
  }
  bool IsGivenNothing() const { return given_ && *given_ == nullptr; }

  MemorySource::Later Later() {
    return [this](std::function<void()> call) { scheduler_.After({}, std::move(call)); };
  }

  absl::StatusOr<OpenedJournal> Open(const etcd::Fence& fence, const std::string& root,
                                     etcd::JournalSource& source) {
    absl::StatusOr<OpenedJournal> opened = absl::UnknownError("not yet");
    etcd::OpenEtcdJournal(leader_, fence, root, source,
                          [&](absl::StatusOr<OpenedJournal> o) { opened = std::move(o); });
    Run();
    return opened;
  }

  Scheduler scheduler_;
  Random random_{1};
  SimEtcd etcd_{scheduler_, random_};
  NearEtcd leader_{scheduler_, etcd_};
  SimClock clock_{scheduler_};
  etcd::PageReader pages_{leader_, [this] { return clock_.Now(); }};
  NearEtcd standby_{scheduler_, etcd_};
  std::shared_ptr<Process> process_ = std::make_shared<Process>(scheduler_, random_);
  int follows_ = 0;
  std::vector<absl::Status> troubles_;
  etcd::JournalMirror mirror_{
      standby_, std::make_unique<SimAlarm>(process_, clock_), "/m", Later(),
      etcd::JournalMirror::Handlers{
          .follows = [this](std::size_t) { ++follows_; },
          .trouble = [this](const absl::Status& why) { troubles_.push_back(why); }}};
  Given given_;
};

TEST_F(JournalMirrorTest, HasWhatWasThereAndWhatHasChangedSince) {
  Set("/m/jobs/a/0000", "1");
  Set("/m/jobs/b/0000", "2");
  Set("/other", "not ours");
  FollowAll();
  EXPECT_EQ(follows_, 1);
  Set("/m/jobs/a/0000", "3");
  Do({Delete{"/m/jobs/b", "/m/jobs/c"}, Put{"/m/store/a/k/0000", "4"}});
  Set("/m/tenants/t/jobs/a/0000", "5");
  const etcd::Fence fence = Elect();
  Run();
  TakeOver(fence);
  EXPECT_TRUE(IsGivenAll());
  EXPECT_EQ((*given_)->keys().size(), 4u);
  EXPECT_FALSE(standby_.is_watched());
}

TEST_F(JournalMirrorTest, DoesNotLeadBeforeItKnowsOfItsOwnElection) {
  FollowAll();
  standby_.tells = false;
  Set("/m/jobs/a/0000", "1");
  TakeOver(Elect());
  Run();
  EXPECT_FALSE(given_.has_value());
  standby_.TellAll();
  EXPECT_TRUE(IsGivenAll());
}

TEST_F(JournalMirrorTest, ReadsEtcdWhenItHasWaitedForLongEnough) {
  FollowAll();
  standby_.tells = false;
  TakeOver(Elect());
  Run();
  mirror_.StopWaiting();
  EXPECT_TRUE(IsGivenNothing());
  EXPECT_FALSE(standby_.is_watched());
  mirror_.StopWaiting();
}

TEST_F(JournalMirrorTest, ReadsEtcdWhenItLeadsBeforeItHasEverything) {
  TakeOver(Elect());
  EXPECT_TRUE(IsGivenNothing()) << "it did not follow anybody";
}

// Keys are read in pages, while the leader goes on.
TEST_F(JournalMirrorTest, WhatChangesWhileItIsReadIsNotMissed) {
  for (int i = 100; i < 300; ++i) Set("/m/store/j/" + std::to_string(i) + "/0000", "old");
  mirror_.Follow();
  for (int i = 100; follows_ == 0; i = (i + 37) % 200 + 100) {
    const std::string key = "/m/store/j/" + std::to_string(i) + "/0000";
    if (i % 3 == 0) {
      Do({Delete{key}});
    } else {
      Set(key, "new");
    }
    ASSERT_TRUE(scheduler_.Step());
  }
  EXPECT_TRUE(TakesOverWithAll());
}

TEST_F(JournalMirrorTest, WatchThatBreaksGoesOnWhereItWas) {
  FollowAll();
  Set("/m/jobs/a/0000", "1");
  Run();
  standby_.tells = false;
  Do({Put{"/m/jobs/a/0000", "2"}, Put{"/m/jobs/b/0000", "2"}});
  standby_.Break();
  standby_.TellAll();
  EXPECT_EQ(standby_.watches, 2);
  EXPECT_TRUE(TakesOverWithAll());
  EXPECT_EQ(follows_, 1) << "nothing was read again";
}

TEST_F(JournalMirrorTest, ReadsAllAgainWhenWhatItMissedIsCompacted) {
  Set("/m/jobs/a/0000", "1");
  FollowAll();
  standby_.tells = false;
  Do({Delete{"/m/jobs/a/0000"}});
  Set("/m/jobs/b/0000", "2");
  Set("/m/jobs/b/0000", "3");
  etcd_.Compact(etcd_.revision());
  standby_.tells = true;
  standby_.Break();
  Run();
  EXPECT_EQ(follows_, 2);
  EXPECT_TRUE(TakesOverWithAll());
}

// "The etcd user's role was mended within a minute, and hours later the take-over read everything."
TEST_F(JournalMirrorTest, BeginsAgainByItselfAfterWhatDidNotPass) {
  Set("/m/jobs/a/0000", "1");
  FollowAll();
  EXPECT_EQ(follows_, 1);
  standby_.refuses = absl::PermissionDeniedError("etcd: permission denied");
  standby_.EndWatchWith(standby_.refuses);
  RunFor(std::chrono::seconds(30));
  EXPECT_EQ(follows_, 1);
  ASSERT_EQ(troubles_.size(), 1u) << "it is said once";
  EXPECT_EQ(troubles_[0], standby_.refuses);
  Set("/m/jobs/a/0000", "2");
  standby_.refuses = absl::OkStatus();
  RunFor(std::chrono::seconds(61));
  EXPECT_EQ(follows_, 2);
  // And is said again when it happens again.
  standby_.EndWatchWith(absl::InternalError("etcd: no"));
  Run();
  EXPECT_EQ(troubles_.size(), 2u);
  RunFor(std::chrono::seconds(2));
  EXPECT_EQ(follows_, 3) << "the pause is short again";
  EXPECT_TRUE(TakesOverWithAll());
}

TEST_F(JournalMirrorTest, PausesGrowWhileItCannotFollow) {
  standby_.refuses = absl::PermissionDeniedError("etcd: permission denied");
  mirror_.Follow();
  RunFor(std::chrono::minutes(10));
  EXPECT_GT(standby_.transactions, 10);
  EXPECT_LT(standby_.transactions, 20);
  // Once a minute, for whoever reads the log of that day alone.
  EXPECT_GE(troubles_.size(), 9u);
  EXPECT_LE(troubles_.size(), 11u);
}

TEST_F(JournalMirrorTest, AnotherLeaderEndsThePause) {
  standby_.refuses = absl::PermissionDeniedError("etcd: permission denied");
  mirror_.Follow();
  RunFor(std::chrono::minutes(10));
  standby_.refuses = absl::OkStatus();
  FollowAll();
  EXPECT_EQ(follows_, 1);
  RunFor(std::chrono::minutes(2));
  EXPECT_EQ(follows_, 1) << "the pause is over";
}

TEST_F(JournalMirrorTest, ReadsEtcdWhenItLeadsDuringAPause) {
  standby_.refuses = absl::PermissionDeniedError("etcd: permission denied");
  FollowAll();
  standby_.refuses = absl::OkStatus();
  TakeOver(Elect());
  EXPECT_TRUE(IsGivenNothing());
  RunFor(std::chrono::minutes(2));
  EXPECT_EQ(follows_, 0) << "nothing is followed any more";
}

// A large batch was committed, and its leader died before it was in the journal.
TEST_F(JournalMirrorTest, BatchThatWasStagedIsCompletedAndInMemory) {
  const etcd::Fence old = Elect();
  etcd::EtcdSource source(leader_, pages_, old);
  auto journal = Open(old, "/m", source);
  ASSERT_TRUE(journal.ok()) << journal.status();
  JournalBatch first;
  first.entries.push_back({"job", "7", std::string(600'000, 'x')});
  first.entries.push_back({"job", "gone", "x"});
  journal->journal->Commit(first, [](const absl::Status&) {});
  Run();
  JournalBatch large;
  for (int i = 0; i < 150; ++i) large.entries.push_back({"job", std::to_string(i), "new"});
  large.entries.push_back({"job", "gone", std::nullopt});
  bool is_committed = false;
  journal->journal->Commit(large, [&](const absl::Status&) { is_committed = true; });
  mirror_.Follow();
  while (!is_committed) ASSERT_TRUE(scheduler_.Step());
  journal->journal.reset();

  const etcd::Fence fence = Elect();
  Run();
  TakeOver(fence);
  ASSERT_TRUE(IsGivenAll());
  ASSERT_TRUE((*given_)->keys().contains("/m/staged"));
  const auto opened = Open(fence, "/m", **given_);
  ASSERT_TRUE(opened.ok()) << opened.status();
  // As it would be read from etcd.
  etcd::EtcdSource again(leader_, pages_, fence);
  const auto read = Open(fence, "/m", again);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(opened->contents.entries.size(), 150u);
  ASSERT_EQ(read->contents.entries.size(), 150u);
  for (std::size_t i = 0; i < 150; ++i) {
    EXPECT_EQ(opened->contents.entries[i].key, read->contents.entries[i].key);
    EXPECT_EQ(opened->contents.entries[i].value, "new");
    EXPECT_EQ(read->contents.entries[i].value, "new");
  }
  EXPECT_EQ(opened->contents.incarnation + 1, read->contents.incarnation);
}

TEST_F(JournalMirrorTest, TenantsJournalsAreOpenedFromTheSameMemory) {
  const etcd::Fence old = Elect();
  for (const char* root : {"/m", "/m/tenants/t"}) {
    etcd::EtcdSource source(leader_, pages_, old);
    auto journal = Open(old, root, source);
    ASSERT_TRUE(journal.ok()) << journal.status();
    JournalBatch batch;
    batch.jobs.push_back({"job", std::string("of ") + root});
    journal->journal->Commit(batch, [](const absl::Status&) {});
    Run();
  }
  FollowAll();
  const etcd::Fence fence = Elect();
  Run();
  TakeOver(fence);
  ASSERT_TRUE(IsGivenAll());
  for (const char* root : {"/m", "/m/tenants/t"}) {
    const auto opened = Open(fence, root, **given_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    ASSERT_EQ(opened->contents.jobs.size(), 1u);
    EXPECT_EQ(opened->contents.jobs[0].second, std::string("of ") + root);
    EXPECT_EQ(opened->contents.incarnation, 2u);
  }
}

// "After etcd was restored from a snapshot a daemon served what it had followed before": revisions
// came again, and the watch told nothing of those that it took for known.
TEST_F(JournalMirrorTest, HoleInTheTransactionsIsReadAnew) {
  Set("/m/sequence", "5.1.1");
  FollowAll();
  const int watches = standby_.watches;
  Set("/m/sequence", "5.1.2");
  Set("/m/tenants/t/sequence", "5.7.1");
  Set("/m/sequence", "9.2.1");
  Run();
  EXPECT_EQ(standby_.watches, watches);
  EXPECT_EQ(follows_, 1);
  // That of another history, whose first was not told.
  Set("/m/sequence", "4.3.2");
  Run();
  EXPECT_EQ(standby_.watches, watches + 1);
  EXPECT_EQ(follows_, 2);
  TakeOver(Elect());
  Run();
  EXPECT_TRUE(IsGivenAll());
}

TEST(IsNextTest, WriterGoesOnOrAnotherBegins) {
  EXPECT_TRUE(etcd::IsNext("", "5.1.1"));
  EXPECT_TRUE(etcd::IsNext("5.1.1", "5.1.2"));
  EXPECT_TRUE(etcd::IsNext("5.1.2", "5.1.2")) << "told again";
  EXPECT_TRUE(etcd::IsNext("5.1.9", "6.2.1"));
  EXPECT_FALSE(etcd::IsNext("", "5.1.2"));
  EXPECT_FALSE(etcd::IsNext("5.1.1", "5.1.3"));
  EXPECT_FALSE(etcd::IsNext("5.1.1", "6.2.2"));
}

// "With 100,000 keys it took a minute to read them": etcd looks through all that are left for each
// page.
TEST(PageSizeTest, SmallKeysAreReadInLargePages) {
  etcd::PageSize size;
  int pages = 0;
  for (int left = 100'000; left > 0; ++pages) {
    const int had = std::min(left, size.Next());
    size.Had(static_cast<std::size_t>(had), static_cast<std::size_t>(had) * 100);
    left -= had;
  }
  EXPECT_LT(pages, 20);
  // Large ones came after them.
  EXPECT_TRUE(size.Shrink());
  EXPECT_EQ(size.Next(), 32);
  EXPECT_FALSE(size.Shrink());
  size.Had(32, std::size_t{32} * (256 << 10));
  EXPECT_EQ(size.Next(), 32);
}

// A page of 8 MiB is waited for eight seconds.
TEST_F(JournalMirrorTest, FollowsOverALinkThatIsTooSlowForAPage) {
  for (int i = 100; i < 140; ++i) {
    Set("/m/store/a/k/" + std::to_string(i), std::string(256 << 10, 'x'));
  }
  standby_.HaveLink(400'000);
  mirror_.Follow();
  RunFor(std::chrono::minutes(1));
  EXPECT_EQ(follows_, 1);
  EXPECT_TRUE(troubles_.empty());
  EXPECT_TRUE(TakesOverWithAll());
}

// Many turns of the loop, in which the lease is kept alive, hand over what is large.
TEST_F(JournalMirrorTest, MuchIsHandedOverInTurns) {
  MemorySource::Keys keys;
  for (int i = 100; i < 200; ++i) keys[std::to_string(i)] = std::string(256 << 10, 'x');
  MemorySource memory(std::move(keys), Later());
  int taken = 0;
  bool is_done = false;
  memory.HandOver(
      {"1", "199"},
      [&](const etcd::KeyValue& key) {
        EXPECT_EQ(key.key, std::to_string(100 + taken++));
        return absl::OkStatus();
      },
      [&](const absl::Status& status) { is_done = status.ok(); });
  EXPECT_LT(taken, 99);
  EXPECT_FALSE(is_done);
  Run();
  EXPECT_EQ(taken, 99);
  EXPECT_TRUE(is_done);
  EXPECT_EQ(memory.keys().size(), 1u) << "what was handed over is not kept";
}

// "With a million small keys a daemon that took over lost the lead at once."
TEST_F(JournalMirrorTest, ManySmallKeysAreHandedOverInTurns) {
  constexpr int kKeys = 25'000;
  MemorySource::Keys keys;
  for (int i = 0; i < kKeys; ++i) keys[std::to_string(100'000 + i)] = "x";
  MemorySource memory(std::move(keys), Later());
  int taken = 0;
  bool is_done = false;
  memory.HandOver(
      {"1", "2"},
      [&](const etcd::KeyValue&) {
        ++taken;
        return absl::OkStatus();
      },
      [&](const absl::Status& status) { is_done = status.ok(); });
  EXPECT_LE(taken, kKeys / 2);
  EXPECT_FALSE(is_done);
  Run();
  EXPECT_EQ(taken, kKeys);
  EXPECT_TRUE(is_done);
}

}  // namespace
}  // namespace muster::rendezvous
