#include "rendezvous/journal/journal_tables.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "rendezvous/journal/checksum.h"

namespace muster::rendezvous {
namespace {

constexpr std::int64_t kFormat = 1;

// As SQLite keeps the text, so that a start can see whether it is still this.
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

// The value of that name, after a look at its checksum.
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
  // A later version may have tables that mean nothing here, so this comes before they are looked
  // at.
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
