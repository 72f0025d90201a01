// What is in a journal's database: its tables, read whole at a start and changed batch by batch.
//
//   meta   name, value             "format", "incarnation"
//   jobs   run id, record
//   store  run id, key, value
//
// Each row carries a CRC of its columns: SQLite finds damage to the structure of its file, but not
// to what the rows say.
#pragma once

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rendezvous/journal/database.h"
#include "rendezvous/journal/journal.h"

namespace muster::rendezvous {

// Creates the tables in an empty database: no jobs, incarnation 0.
absl::Status MakeTables(Database& database);

// Checks everything and reads it. DataLoss with what is wrong: "a row of its table jobs has a wrong
// checksum"; FailedPrecondition when a later version of Muster has written it.
absl::Status ReadTables(Database& database, JournalContents& contents);

absl::Status SetIncarnation(Database& database, std::uint64_t incarnation);

// The statements that put a batch into the tables. Must not outlive the Database.
class BatchWriter {
 public:
  static absl::StatusOr<BatchWriter> Prepare(Database& database);

  // Within a transaction, which the caller begins and ends. On error, part of it may have been
  // written.
  absl::Status Write(const JournalBatch& batch);

 private:
  BatchWriter(Statement set_job, Statement forget_job, Statement forget_entries,
              Statement set_entry, Statement delete_entry)
      : set_job_(std::move(set_job)),
        forget_job_(std::move(forget_job)),
        forget_entries_(std::move(forget_entries)),
        set_entry_(std::move(set_entry)),
        delete_entry_(std::move(delete_entry)) {}

  absl::Status Write(const JournalBatch::Job& job);
  absl::Status Write(const JournalBatch::Entry& entry);

  Statement set_job_;
  Statement forget_job_;
  Statement forget_entries_;
  Statement set_entry_;
  Statement delete_entry_;
};

}  // namespace muster::rendezvous
