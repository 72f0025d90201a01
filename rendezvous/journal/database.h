// SQLite in our words: errors as Status, results as values, handles that close themselves.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct sqlite3;
struct sqlite3_stmt;

namespace muster::rendezvous {

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

  // True: there is a row, which the column functions read. False: it is done. Either way the
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

// A connection to an existing database file, for one thread at a time. Takes the file for itself
// alone, so that SQLite needs no memory shared between processes; closing it leaves the
// write-ahead log as it is.
class Database {
 public:
  // `path` must have no symbolic link in it. `vfs`: SQLite's name for the layer that files are
  // reached by; empty is the system's.
  static absl::StatusOr<std::unique_ptr<Database>> Open(const std::string& path,
                                                        const std::string& vfs);

  absl::StatusOr<Statement> Prepare(std::string_view sql);
  // Statements without parameters, whose rows do not matter.
  absl::Status Run(const char* sql);
  // The first column of the first row; empty when there is none.
  absl::StatusOr<std::string> Query(std::string_view sql);

  // Whether a BEGIN has neither been committed nor rolled back (some errors do so by themselves).
  bool InTransaction() const;

  // The length of the write-ahead log at the last commit. SQLite's own checkpoints are off, since
  // nobody would hear of their errors.
  int log_pages() const { return log_pages_; }
  // Copies the log into the file, after which the log is written from its beginning again.
  // `truncate`: makes it empty at once.
  absl::Status Checkpoint(bool truncate);

  const std::string& path() const { return path_; }
  // The Status for one of SQLite's result codes, the last thing that happened on this connection.
  absl::Status Failure(const char* attempt, int code) const;

 private:
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  // Of the last operation on the log or, when none of those has failed, on the file.
  int LastErrno() const;

  Database(std::string path, sqlite3* handle) : path_(std::move(path)), handle_(handle) {}

  const std::string path_;
  int log_pages_ = 0;
  std::unique_ptr<sqlite3, Close> handle_;
};

}  // namespace muster::rendezvous
