// What is in a journal's database: its tables, read whole at a start and changed batch by batch.
//
//   meta   name, value             "format", "incarnation"
//   jobs   run id, record
//   store  run id, key, value
//
// Each row carries a CRC of its columns: SQLite detects damage to the structure of its file, but
// not to the contents of rows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "rendezvous/journal/journal.h"

struct sqlite3;
struct sqlite3_stmt;

namespace muster::rendezvous {

// A thin wrapper around SQLite: errors as Status, results as values, handles that close themselves.

// Errors of a Database and its Statements name the file and the cause:
//   ResourceExhausted  the disk, or a quota, is full
//   DataLoss           the file is damaged, or is not a database
//   Internal           anything else, with errno's words where the system was the cause

// One prepared statement. Must not outlive its Database.
class Statement {
 public:
  // Parameters count from 1. The bytes must remain valid until Step has been called for the last
  // time.
  void Bind(int parameter, std::string_view bytes);
  void Bind(int parameter, std::int64_t number);

  // True: there is a row for the column functions to read. False: no more rows. Either way the
  // statement must be Reset (or, for one with no rows, Run) before it is bound again.
  absl::StatusOr<bool> Step();
  void Reset();
  // Step to the end, then Reset.
  absl::Status Run();

  // Columns count from 0. The bytes are valid until the next Step or Reset.
  std::string_view Bytes(int column) const;
  std::int64_t Number(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Statement(const class Database* database, sqlite3_stmt* statement);

  const Database* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

// A connection to an existing database file, for one thread at a time. Opens the file exclusively,
// so that SQLite needs no memory shared between processes; closing it leaves the write-ahead log as
// it is.
class Database {
 public:
  // `path` must contain no symbolic link. `vfs`: SQLite's name for the layer through which it
  // accesses files; empty: the system's.
  static absl::StatusOr<std::unique_ptr<Database>> Open(const std::string& path,
                                                        const std::string& vfs);

  absl::StatusOr<Statement> Prepare(std::string_view sql);
  // Runs statements without parameters, ignoring rows.
  absl::Status Run(const char* sql);
  // The first column of the first row; empty when there is none.
  absl::StatusOr<std::string> Query(std::string_view sql);

  // Whether a BEGIN is still open (some errors roll back by themselves).
  bool InTransaction() const;

  // The length of the write-ahead log at the last commit. SQLite's automatic checkpoints are off,
  // since their errors would go unnoticed.
  int log_pages() const { return log_pages_; }
  // Copies the log into the file; the log is then written from its beginning again. `truncate`:
  // empties it at once.
  absl::Status Checkpoint(bool truncate);

  const std::string& path() const { return path_; }
  // The Status for one of SQLite's result codes, from the last operation on this connection.
  absl::Status Failure(const char* attempt, int code) const;

 private:
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  // From the last operation on the log or, if none of those failed, on the file.
  int LastErrno() const;

  Database(std::string path, sqlite3* handle) : path_(std::move(path)), handle_(handle) {}

  const std::string path_;
  int log_pages_ = 0;
  std::unique_ptr<sqlite3, Close> handle_;
};

// Creates the tables in an empty database: no jobs, incarnation 0.
absl::Status MakeTables(Database& database);

// Checks everything and reads it. DataLoss with the problem: "a row of its table jobs has a wrong
// checksum"; FailedPrecondition if a later version of Muster has written it.
absl::Status ReadTables(Database& database, JournalContents& contents);

absl::Status SetIncarnation(Database& database, std::uint64_t incarnation);

// The statements that put a batch into the tables. Must not outlive the Database.
class BatchWriter {
 public:
  static absl::StatusOr<BatchWriter> Prepare(Database& database);

  // Within a transaction that the caller begins and ends. On error, part of the batch may have been
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
