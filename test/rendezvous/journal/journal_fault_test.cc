// Goal: acknowledged data is on disk, whatever the disk does; refused data is not. Method: put
// SQLite's files on a layer that fails each operation in turn, or takes a snapshot at any moment of
// what a power failure would leave.
#include <cerrno>
#include <optional>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "test/rendezvous/journal/fault_vfs.h"
#include "test/rendezvous/journal/history.h"
#include "test/rendezvous/journal/written_journal.h"
#include "test/support/temp_dir.h"

namespace muster::rendezvous {
namespace {

using muster::test::TempDir;
using test::BatchesIn;
using test::BatchNumber;
using test::FaultVfs;
using Kind = FaultVfs::Kind;
using testing::HasSubstr;

class JournalFaultTest : public testing::Test {
 protected:
  test::OpenedFile Open() {
    auto opened = test::OpenFile(temp_.path(), {.checkpoint_pages = 30, .vfs = FaultVfs::kName});
    EXPECT_TRUE(opened.ok()) << opened.status();
    if (!opened.ok()) std::abort();
    return *std::move(opened);
  }

  // From the `count`-th operation of that kind on, each fails in that way, until Heal.
  void FailFrom(Kind kind, int count, const FaultVfs::Fault& fault) {
    failed_ = 0;
    vfs_.before =
        [this, kind, left = count,
         fault](const FaultVfs::Operation& operation) mutable -> std::optional<FaultVfs::Fault> {
      ++operations_;
      if (operation.kind != kind || --left > 0) return std::nullopt;
      ++failed_;
      FaultVfs::Fault partly = fault;
      partly.written = operation.size / 2;
      return partly;
    };
  }
  void Heal() { vfs_.before = nullptr; }

  TempDir temp_;
  FaultVfs vfs_;
  int operations_ = 0;
  int failed_ = 0;
};

TEST_F(JournalFaultTest, DiskThatIsFullAtAnyWriteTakesNothingAndTheBatchLater) {
  int number = 0;
  int refused = 0;
  {
    const test::OpenedFile opened = Open();
    for (int count = 1; count <= 150; ++count) {
      FailFrom(Kind::kWrite, count % 25 + 1, {.result = SQLITE_FULL, .system_errno = ENOSPC});
      absl::Status status = opened.file->Write(BatchNumber(++number));
      opened.file->Tidy();
      if (!status.ok()) {
        ++refused;
        ASSERT_TRUE(absl::IsResourceExhausted(status)) << status;
        EXPECT_THAT(std::string(status.message()), HasSubstr("No space left on device"));
        // Still full at first, then no longer.
        if (failed_ > 0 && count % 3 == 0) {
          status = opened.file->Write(BatchNumber(number));
          ASSERT_TRUE(status.ok() || absl::IsResourceExhausted(status)) << status;
          opened.file->Tidy();
        }
        Heal();
        if (!status.ok()) status = opened.file->Write(BatchNumber(number));
        ASSERT_TRUE(status.ok()) << status;
      }
      Heal();
      opened.file->Tidy();
    }
  }
  EXPECT_GT(refused, 50);
  EXPECT_EQ(BatchesIn(Open().contents), number);
}

TEST_F(JournalFaultTest, NothingOfARefusedBatchIsThereAfterACrash) {
  std::mt19937 random(3);
  const test::OpenedFile opened = Open();
  ASSERT_TRUE(opened.file->Write(BatchNumber(1)).ok());
  int refused = 0;
  for (int count = 1; count <= 12; ++count) {
    FailFrom(Kind::kWrite, count, {.result = SQLITE_FULL, .system_errno = ENOSPC});
    const absl::Status status = opened.file->Write(BatchNumber(2));
    if (status.ok()) break;
    ASSERT_TRUE(absl::IsResourceExhausted(status)) << status;
    ++refused;
    const TempDir after;
    vfs_.WritePowerFailure(after.path(), 1, random);
    const auto found = test::OpenFile(after.path());
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(BatchesIn(found->contents), 1);
  }
  EXPECT_GT(refused, 2);
}

TEST_F(JournalFaultTest, QuotaIsAFullDisk) {
  const test::OpenedFile opened = Open();
  FailFrom(Kind::kWrite, 1, {.result = SQLITE_IOERR_WRITE, .system_errno = EDQUOT});
  const absl::Status status = opened.file->Write(BatchNumber(1));
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("Disk quota exceeded"));
  Heal();
  EXPECT_TRUE(opened.file->Write(BatchNumber(1)).ok());
}

TEST_F(JournalFaultTest, FailedSyncIsTheEndAndIsNotTriedAgain) {
  // The first sync of a new log is its header's, the second the transaction's.
  for (const int count : {1, 2}) {
    const test::OpenedFile opened = Open();
    FailFrom(Kind::kSync, count, {.result = SQLITE_IOERR_FSYNC, .system_errno = EIO});
    const absl::Status status = opened.file->Write(BatchNumber(1));
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("fsync (Input/output error)"));
    EXPECT_EQ(failed_, 1);
    Heal();
    operations_ = 0;
    FailFrom(Kind::kSync, 1000, {});
    EXPECT_EQ(opened.file->Write(BatchNumber(1)), status);
    opened.file->Tidy();
    EXPECT_EQ(operations_, 0);
    Heal();
  }
}

TEST_F(JournalFaultTest, FailedSyncOfACheckpointIsTheEndOfTheNextBatch) {
  // SQLite's own checkpoints report no errors.
  for (const int count : {1, 2}) {
    const test::OpenedFile opened = Open();
    FailFrom(Kind::kSync, 1000, {});
    int number = BatchesIn(opened.contents).value();
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(opened.file->Write(BatchNumber(++number)).ok());
    // The log's sync comes first, then the database's.
    FailFrom(Kind::kSync, count, {.result = SQLITE_IOERR_FSYNC, .system_errno = EIO});
    opened.file->Tidy();
    EXPECT_EQ(failed_, 1);
    operations_ = 0;
    const absl::Status status = opened.file->Write(BatchNumber(number + 1));
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
    EXPECT_EQ(operations_, 0);
    Heal();
  }
}

TEST_F(JournalFaultTest, FailedWriteIsTheEnd) {
  const test::OpenedFile opened = Open();
  FailFrom(Kind::kWrite, 1, {.result = SQLITE_IOERR_WRITE, .system_errno = EIO});
  const absl::Status status = opened.file->Write(BatchNumber(1));
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("Input/output error"));
  Heal();
  EXPECT_EQ(opened.file->Write(BatchNumber(1)), status);
}

TEST_F(JournalFaultTest, StartThatCannotWriteSaysSoAndTheNextGoesWell) {
  for (int count = 1; count <= 40; ++count) {
    for (const Kind kind : {Kind::kWrite, Kind::kSync}) {
      const TempDir temp;
      const SqliteJournalOptions options{.vfs = FaultVfs::kName};
      FailFrom(kind, count,
               kind == Kind::kWrite
                   ? FaultVfs::Fault{.result = SQLITE_FULL, .system_errno = ENOSPC}
                   : FaultVfs::Fault{.result = SQLITE_IOERR_FSYNC, .system_errno = EIO});
      const absl::Status first = test::OpenFile(temp.path(), options).status();
      EXPECT_EQ(first.ok(), failed_ == 0) << first;
      if (!first.ok()) {
        EXPECT_EQ(first.code(), kind == Kind::kWrite ? absl::StatusCode::kResourceExhausted
                                                     : absl::StatusCode::kInternal)
            << first;
      }
      Heal();
      EXPECT_TRUE(test::OpenFile(temp.path(), options).ok());
    }
  }
}

TEST_F(JournalFaultTest, WhatIsAcknowledgedOutlivesThePower) {
  std::mt19937 random(4);
  int acknowledged = 0;
  int begun = 0;
  int pictures = 0;
  const auto take_picture = [&] {
    ++pictures;
    const double chance = (pictures % 5) / 4.0;
    const TempDir after;
    vfs_.WritePowerFailure(after.path(), chance, random);
    const auto found = test::OpenFile(after.path());
    ASSERT_TRUE(found.ok()) << found.status();
    const std::optional<int> there = BatchesIn(found->contents);
    ASSERT_TRUE(there.has_value()) << "a batch is there in part";
    EXPECT_GE(*there, acknowledged);
    EXPECT_LE(*there, begun);
  };
  const test::OpenedFile opened = Open();
  vfs_.before = [&](const FaultVfs::Operation&) -> std::optional<FaultVfs::Fault> {
    if (random() % 8 == 0) take_picture();
    return std::nullopt;
  };
  while (pictures < 150) {
    ASSERT_TRUE(opened.file->Write(BatchNumber(++begun)).ok());
    ++acknowledged;
    if (random() % 4 == 0) take_picture();
    opened.file->Tidy();
    if (HasFatalFailure()) return;
  }
  // Over several restarts of the log.
  EXPECT_GT(begun, 40);
}

}  // namespace
}  // namespace muster::rendezvous
