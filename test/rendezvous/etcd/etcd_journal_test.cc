// A journal in an etcd whose space is used up at the worst moment.
#include "rendezvous/etcd/etcd_journal.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include <gtest/gtest.h>

#include "rendezvous/etcd/journal_source.h"
#include "test/rendezvous/etcd/near_etcd.h"
#include "test/rendezvous/etcd/sim_etcd.h"

namespace muster::rendezvous {
namespace {

using etcd::Transaction;

class EtcdJournalTest : public testing::Test {
 protected:
  // The next leader, whatever was under way.
  JournalContents TakeOver() {
    journal_.reset();
    const auto became = *etcd_.Apply({.then = {etcd::Delete{"/leader"}}});
    const auto leader = *etcd_.Apply({.then = {etcd::Put{"/leader", "x"}}});
    EXPECT_GT(leader.revision, became.revision);
    absl::StatusOr<OpenedJournal> opened = absl::UnknownError("not yet");
    const etcd::Fence fence{"/leader", leader.revision};
    etcd::PageReader pages(client_,
                           [this] { return etcd::PageReader::TimePoint(scheduler_.now()); });
    etcd::EtcdSource source(client_, pages, fence);
    etcd::OpenEtcdJournal(client_, fence, "", source,
                          [&](absl::StatusOr<OpenedJournal> o) { opened = std::move(o); });
    while (scheduler_.Step()) {
    }
    EXPECT_TRUE(opened.ok()) << opened.status();
    if (!opened.ok()) return {};
    journal_ = std::move(opened->journal);
    return std::move(opened->contents);
  }

  absl::Status Commit(JournalBatch batch) {
    absl::Status status = absl::UnknownError("not yet");
    journal_->Commit(std::move(batch), [&](absl::Status s) { status = std::move(s); });
    while (scheduler_.Step()) {
    }
    return status;
  }

  static JournalBatch Large(const std::string& value) {
    JournalBatch batch;
    for (int i = 0; i < 150; ++i) batch.entries.push_back({"job", std::to_string(i), value});
    return batch;
  }

  // "Put staged", after which a large batch counts.
  static bool Commits(const Transaction& transaction) {
    for (const etcd::Operation& operation : transaction.then) {
      const auto* put = std::get_if<etcd::Put>(&operation);
      if (put != nullptr && put->key == "/staged") return true;
    }
    return false;
  }

  Scheduler scheduler_;
  Random random_{1};
  SimEtcd etcd_{scheduler_, random_};
  NearEtcd client_{scheduler_, etcd_};
  std::unique_ptr<Journal> journal_;
};

// "A batch in etcd has no parts", and no daemon could lead any more.
TEST_F(EtcdJournalTest, BatchThatWasCommittedUnseenIsNotHalfRemoved) {
  TakeOver();
  client_.answers = [](const Transaction& transaction) { return !Commits(transaction); };
  EXPECT_TRUE(absl::IsResourceExhausted(Commit(Large("old"))));
  // It is tried again, and the daemon dies after the first of its transactions.
  client_.answers = {};
  journal_->Commit(Large("old"), [](const absl::Status&) {});
  scheduler_.Step();
  TakeOver();
  EXPECT_TRUE(Commit(Large("new")).ok());
  const JournalContents contents = TakeOver();
  ASSERT_EQ(contents.entries.size(), 150u);
  EXPECT_EQ(contents.entries[0].value, "new");
}

// What was acknowledged later must not be undone by it.
TEST_F(EtcdJournalTest, BatchThatWasCommittedUnseenIsNotTakenOverAfterALaterOne) {
  TakeOver();
  client_.answers = [](const Transaction& transaction) { return !Commits(transaction); };
  EXPECT_TRUE(absl::IsResourceExhausted(Commit(Large("old"))));
  client_.answers = {};
  JournalBatch later;
  later.entries.push_back({"job", "7", "new"});
  EXPECT_TRUE(Commit(later).ok());
  for (const JournalBatch::Entry& entry : TakeOver().entries) {
    if (entry.key == "7") {
      EXPECT_EQ(entry.value, "new");
    }
  }
}

}  // namespace
}  // namespace muster::rendezvous
