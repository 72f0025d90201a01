#include "rendezvous/journal/database.h"

#include <sqlite3.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/failure.h"

namespace muster::rendezvous {

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

Statement::Statement(const Database* database, sqlite3_stmt* statement)
    : database_(database), statement_(statement) {}

// Binding fails when the parameter is not there, which the first test of the statement shows, or
// when the bytes are more than SQLite takes; then the column, which is NOT NULL, refuses the row.
void Statement::Bind(int parameter, std::string_view bytes) {
  // A null pointer would be NULL rather than no bytes.
  const char* data = bytes.data() == nullptr ? "" : bytes.data();
  sqlite3_bind_blob64(statement_.get(), parameter, data, bytes.size(), SQLITE_STATIC);
}

void Statement::Bind(int parameter, std::int64_t number) {
  sqlite3_bind_int64(statement_.get(), parameter, number);
}

absl::StatusOr<bool> Statement::Step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return database_->Failure(sqlite3_stmt_readonly(statement_.get()) ? "read" : "write", code);
}

void Statement::Reset() {
  // Says again what Step said.
  sqlite3_reset(statement_.get());
}

absl::Status Statement::Run() {
  absl::StatusOr<bool> row = true;
  while (row.ok() && *row) row = Step();
  Reset();
  return row.status();
}

std::string_view Statement::Bytes(int column) const {
  // In this order: asking for the bytes may convert the value.
  const void* data = sqlite3_column_blob(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  // No bytes are a null pointer.
  return data == nullptr ? std::string_view("")
                         : std::string_view(static_cast<const char*>(data), size);
}

std::int64_t Statement::Number(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

void Database::Close::operator()(sqlite3* handle) const {
  sqlite3_close(handle);
}

absl::StatusOr<std::unique_ptr<Database>> Database::Open(const std::string& path,
                                                         const std::string& vfs) {
  constexpr int kFlags =
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE;
  sqlite3* handle = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &handle, kFlags, vfs.empty() ? nullptr : vfs.c_str());
  std::unique_ptr<Database> database(new Database(path, handle));
  if (code != SQLITE_OK) return database->Failure("open", code);
  // Even a journal that is refused stays as it was found.
  sqlite3_db_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  // Replaces the automatic checkpoint, which is such a hook.
  sqlite3_wal_hook(
      handle,
      [](void* pages, sqlite3*, const char*, int count) {
        *static_cast<int*>(pages) = count;
        return SQLITE_OK;
      },
      &database->log_pages_);
  return database;
}

absl::StatusOr<Statement> Database::Prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(handle_.get(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) return Failure("read", code);
  return Statement(this, statement);
}

absl::Status Database::Run(const char* sql) {
  const int code = sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : Failure("write", code);
}

absl::StatusOr<std::string> Database::Query(std::string_view sql) {
  absl::StatusOr<Statement> statement = Prepare(sql);
  if (!statement.ok()) return statement.status();
  const absl::StatusOr<bool> row = statement->Step();
  if (!row.ok()) return row.status();
  return *row ? std::string(statement->Bytes(0)) : std::string();
}

bool Database::InTransaction() const {
  return sqlite3_get_autocommit(handle_.get()) == 0;
}

absl::Status Database::Checkpoint(bool truncate) {
  const int mode = truncate ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE;
  const int code = sqlite3_wal_checkpoint_v2(handle_.get(), "main", mode, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : Failure("checkpoint", code);
}

int Database::LastErrno() const {
  // sqlite3_system_errno knows nothing of what failed within a COMMIT; the files do.
  int error = 0;
  sqlite3_file* log = nullptr;
  sqlite3_file_control(handle_.get(), "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
  if (log != nullptr && log->pMethods != nullptr) {
    log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &error);
  }
  if (error == 0) {
    sqlite3_file_control(handle_.get(), "main", SQLITE_FCNTL_LAST_ERRNO, &error);
  }
  return error != 0 ? error : sqlite3_system_errno(handle_.get());
}

absl::Status Database::Failure(const char* attempt, int code) const {
  const int system = LastErrno();
  const int primary = code & 0xff;
  std::string sentence = absl::StrCat(attempt, " ", path_, ": ");
  // A quota is reported as an error of writing.
  if (primary == SQLITE_FULL || (code == SQLITE_IOERR_WRITE && system == EDQUOT)) {
    absl::StrAppend(&sentence, base::SystemCause(primary == SQLITE_FULL ? ENOSPC : EDQUOT));
    return absl::ResourceExhaustedError(sentence);
  }
  absl::StrAppend(&sentence, sqlite3_errmsg(handle_.get()));
  if (primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB) return absl::DataLossError(sentence);
  if (code == SQLITE_CANTOPEN_SYMLINK) absl::StrAppend(&sentence, " (it is a symbolic link)");
  if (primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN) {
    if (code == SQLITE_IOERR_FSYNC) absl::StrAppend(&sentence, " in fsync");
    if (system != 0) absl::StrAppend(&sentence, " (", base::SystemCause(system), ")");
  }
  return absl::InternalError(sentence);
}

}  // namespace muster::rendezvous
