#include "rendezvous/journal/journal_tables.h"

#include <sqlite3.h>

#include <cerrno>
#include <optional>

#include "absl/strings/str_cat.h"

#include "base/failure.h"

namespace muster::rendezvous {

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

Statement::Statement(const Database* database, sqlite3_stmt* statement)
    : database_(database), statement_(statement) {}

// Binding fails if the parameter does not exist, which the statement's first test shows, or if
// there are more bytes than SQLite accepts; then the column, which is NOT NULL, rejects the row.
void Statement::Bind(int parameter, std::string_view bytes) {
  // A null pointer would bind NULL instead of an empty blob.
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
  // Repeats Step's error.
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
  // SQLite returns a null pointer for an empty blob.
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
  // Leaves even a rejected journal as it was found.
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
  // sqlite3_system_errno misses failures within a COMMIT; the files have them.
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
  // A quota and the file size limit show up as write errors.
  const bool at_limit = code == SQLITE_IOERR_WRITE && (system == EDQUOT || system == EFBIG);
  if (primary == SQLITE_FULL || at_limit) {
    absl::StrAppend(&sentence, base::SystemCause(at_limit ? system : ENOSPC));
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

namespace {

constexpr std::int64_t kFormat = 1;

// Exactly as SQLite stores it, so that a start can compare.
constexpr const char* kTables[] = {
    "CREATE TABLE jobs(run_id BLOB NOT NULL PRIMARY KEY, record BLOB NOT NULL, "
    "crc INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE meta(name BLOB NOT NULL PRIMARY KEY, value INTEGER NOT NULL, "
    "crc INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE store(run_id BLOB NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL, "
    "crc INTEGER NOT NULL, PRIMARY KEY(run_id, key)) WITHOUT ROWID",
};

std::int64_t MetaCrc(std::string_view name, std::int64_t value) {
  return Checksum({name, {reinterpret_cast<const char*>(&value), sizeof value}});
}

absl::Status WrongCrc(const char* table) {
  return absl::DataLossError(absl::StrCat("a row of its table ", table, " has a wrong checksum"));
}

// The value of that name, once its checksum is verified.
absl::StatusOr<std::int64_t> GetMeta(Database& database, std::string_view name) {
  absl::StatusOr<Statement> get = database.Prepare("SELECT value, crc FROM meta WHERE name = ?1");
  if (!get.ok()) return get.status();
  get->Bind(1, name);
  const absl::StatusOr<bool> row = get->Step();
  if (!row.ok()) return row.status();
  if (!*row) return absl::DataLossError("a row of its table meta is missing");
  const std::int64_t value = get->Number(0);
  if (get->Number(1) != MetaCrc(name, value)) return WrongCrc("meta");
  return value;
}

absl::Status SetMeta(Database& database, std::string_view name, std::int64_t value) {
  absl::StatusOr<Statement> set = database.Prepare("REPLACE INTO meta VALUES(?1, ?2, ?3)");
  if (!set.ok()) return set.status();
  set->Bind(1, name);
  set->Bind(2, value);
  set->Bind(3, MetaCrc(name, value));
  return set->Run();
}

absl::Status CheckStructure(Database& database) {
  const absl::StatusOr<std::string> found = database.Query("PRAGMA quick_check(1)");
  if (!found.ok()) return found.status();
  if (*found != "ok") return absl::DataLossError(*found);
  const absl::StatusOr<std::string> tables = database.Query(
      "SELECT group_concat(sql, ';') FROM (SELECT sql FROM sqlite_schema ORDER BY name)");
  if (!tables.ok()) return tables.status();
  std::string expected;
  for (const char* table : kTables) absl::StrAppend(&expected, expected.empty() ? "" : ";", table);
  return *tables == expected ? absl::OkStatus()
                             : absl::DataLossError("its tables are not a journal's");
}

absl::Status ReadJobs(Database& database, JournalContents& contents) {
  absl::StatusOr<Statement> rows = database.Prepare("SELECT run_id, record, crc FROM jobs");
  if (!rows.ok()) return rows.status();
  absl::StatusOr<bool> row = rows->Step();
  for (; row.ok() && *row; row = rows->Step()) {
    if (rows->Number(2) != Checksum({rows->Bytes(0), rows->Bytes(1)})) return WrongCrc("jobs");
    contents.jobs.emplace_back(rows->Bytes(0), rows->Bytes(1));
  }
  return row.status();
}

absl::Status ReadEntries(Database& database, JournalContents& contents) {
  absl::StatusOr<Statement> rows = database.Prepare("SELECT run_id, key, value, crc FROM store");
  if (!rows.ok()) return rows.status();
  absl::StatusOr<bool> row = rows->Step();
  for (; row.ok() && *row; row = rows->Step()) {
    if (rows->Number(3) != Checksum({rows->Bytes(0), rows->Bytes(1), rows->Bytes(2)})) {
      return WrongCrc("store");
    }
    contents.entries.push_back(
        {std::string(rows->Bytes(0)), std::string(rows->Bytes(1)), std::string(rows->Bytes(2))});
  }
  return row.status();
}

}  // namespace

absl::Status MakeTables(Database& database) {
  absl::Status status = database.Run("BEGIN");
  for (const char* table : kTables) {
    if (status.ok()) status = database.Run(table);
  }
  if (status.ok()) status = SetMeta(database, "format", kFormat);
  if (status.ok()) status = SetMeta(database, "incarnation", 0);
  if (status.ok()) status = database.Run("COMMIT");
  return status;
}

absl::Status ReadTables(Database& database, JournalContents& contents) {
  // A later version may have other tables, so this comes first.
  const absl::StatusOr<std::int64_t> format = GetMeta(database, "format");
  if (!format.ok()) return format.status();
  if (*format != kFormat) {
    return absl::FailedPreconditionError(
        absl::StrCat("journal ", database.path(), " has format ", *format,
                     ", and this version of Muster knows format ", kFormat,
                     ": start the version that wrote it, or name another directory"));
  }
  if (absl::Status sound = CheckStructure(database); !sound.ok()) return sound;
  const absl::StatusOr<std::int64_t> incarnation = GetMeta(database, "incarnation");
  if (!incarnation.ok()) return incarnation.status();
  contents.incarnation = static_cast<std::uint64_t>(*incarnation);
  if (absl::Status read = ReadJobs(database, contents); !read.ok()) return read;
  return ReadEntries(database, contents);
}

absl::Status SetIncarnation(Database& database, std::uint64_t incarnation) {
  return SetMeta(database, "incarnation", static_cast<std::int64_t>(incarnation));
}

absl::StatusOr<BatchWriter> BatchWriter::Prepare(Database& database) {
  absl::Status failed;
  const auto prepare = [&](std::string_view sql) -> std::optional<Statement> {
    absl::StatusOr<Statement> statement = database.Prepare(sql);
    if (statement.ok()) return *std::move(statement);
    failed = statement.status();
    return std::nullopt;
  };
  auto set_job = prepare("REPLACE INTO jobs VALUES(?1, ?2, ?3)");
  auto forget_job = prepare("DELETE FROM jobs WHERE run_id = ?1");
  auto forget_entries = prepare("DELETE FROM store WHERE run_id = ?1");
  auto set_entry = prepare("REPLACE INTO store VALUES(?1, ?2, ?3, ?4)");
  auto delete_entry = prepare("DELETE FROM store WHERE run_id = ?1 AND key = ?2");
  if (!failed.ok()) return failed;
  return BatchWriter(*std::move(set_job), *std::move(forget_job), *std::move(forget_entries),
                     *std::move(set_entry), *std::move(delete_entry));
}

absl::Status BatchWriter::Write(const JournalBatch& batch) {
  for (const JournalBatch::Job& job : batch.jobs) {
    if (absl::Status status = Write(job); !status.ok()) return status;
  }
  for (const JournalBatch::Entry& entry : batch.entries) {
    if (absl::Status status = Write(entry); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status BatchWriter::Write(const JournalBatch::Job& job) {
  if (job.record.has_value()) {
    set_job_.Bind(1, job.run_id);
    set_job_.Bind(2, *job.record);
    set_job_.Bind(3, Checksum({job.run_id, *job.record}));
    return set_job_.Run();
  }
  forget_entries_.Bind(1, job.run_id);
  if (absl::Status status = forget_entries_.Run(); !status.ok()) return status;
  forget_job_.Bind(1, job.run_id);
  return forget_job_.Run();
}

absl::Status BatchWriter::Write(const JournalBatch::Entry& entry) {
  if (entry.value.has_value()) {
    set_entry_.Bind(1, entry.run_id);
    set_entry_.Bind(2, entry.key);
    set_entry_.Bind(3, *entry.value);
    set_entry_.Bind(4, Checksum({entry.run_id, entry.key, *entry.value}));
    return set_entry_.Run();
  }
  delete_entry_.Bind(1, entry.run_id);
  delete_entry_.Bind(2, entry.key);
  return delete_entry_.Run();
}

}  // namespace muster::rendezvous
