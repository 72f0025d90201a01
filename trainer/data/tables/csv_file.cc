#include "trainer/data/tables/csv_file.h"

#include <csv.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <new>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/failure.h"

#include "trainer/data/datasets/unreadable.h"

namespace muster::trainer {
namespace {

constexpr std::size_t kLongestRecord = std::size_t{16} << 20;
constexpr std::size_t kBufferStep = std::size_t{1} << 20;
constexpr absl::string_view kByteOrderMark = "\xef\xbb\xbf";

// libcsv's parser, fed line by line, so that it is known on which line a record begins.
class RecordParser {
 public:
  RecordParser() {
    if (csv_init(&parser_, CSV_STRICT | CSV_STRICT_FINI) != 0) throw std::bad_alloc();
    // By how much a field's buffer grows; with the default of 128 bytes a long one is copied so
    // often that it takes minutes.
    csv_set_blk_size(&parser_, kBufferStep);
  }
  ~RecordParser() { csv_free(&parser_); }
  RecordParser(const RecordParser&) = delete;
  RecordParser& operator=(const RecordParser&) = delete;

  // Parses `text`, line `line` of the file with its end. False when it is not CSV.
  bool Feed(const std::string& text, std::int64_t line) {
    if (parser_.pstate == kBetweenRecords) {
      open_.line = line;
      fed_ = 0;
    }
    fed_ += text.size();
    return csv_parse(&parser_, text.data(), text.size(), OnField, OnRecord, this) == text.size();
  }
  // The end of the file, which may be that of the last record. False when it is inside of quotes.
  bool Finish() { return csv_fini(&parser_, OnField, OnRecord, this) == 0; }

  bool out_of_memory() { return csv_error(&parser_) == CSV_ENOMEM; }
  // The records that have ended since the last call.
  std::vector<CsvRow> TakeRows() { return std::exchange(whole_, {}); }
  // Where the record begins that has not ended yet, and how many bytes of it there are so far.
  std::int64_t open_line() const { return open_.line; }
  std::size_t open_bytes() const { return parser_.pstate == kBetweenRecords ? 0 : fed_; }

 private:
  static constexpr int kBetweenRecords = 0;  // ROW_NOT_BEGUN in libcsv.c

  static void OnField(void* text, std::size_t size, void* self) {
    static_cast<RecordParser*>(self)->open_.fields.emplace_back(static_cast<const char*>(text),
                                                                size);
  }
  static void OnRecord(int, void* self) {
    auto* parser = static_cast<RecordParser*>(self);
    const std::int64_t line = parser->open_.line;
    parser->whole_.push_back(std::exchange(parser->open_, CsvRow{.line = line, .fields = {}}));
  }

  csv_parser parser_;
  CsvRow open_;
  std::size_t fed_ = 0;
  std::vector<CsvRow> whole_;
};

absl::Status GiveRows(RecordParser& parser, const std::function<absl::Status(CsvRow row)>& on_row) {
  for (CsvRow& row : parser.TakeRows()) {
    const absl::Status status = on_row(std::move(row));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status BadCsvLine(const std::string& path, std::int64_t line, const std::string& why) {
  return Unreadable(path, absl::StrCat("line ", line, ": ", why));
}

absl::Status ReadCsv(const std::string& path,
                     const std::function<absl::Status(CsvRow row)>& on_row) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored)) {
    return Unreadable(path, "not a regular file");
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return Unreadable(path, base::SystemCause());
  RecordParser parser;
  std::string text;
  for (std::int64_t line = 1; std::getline(file, text); ++line) {
    if (line == 1 && absl::StartsWith(text, kByteOrderMark)) text.erase(0, kByteOrderMark.size());
    if (absl::StrContains(text, '\0')) {
      return BadCsvLine(path, line, "it has a zero byte, so this is not text");
    }
    if (!file.eof()) text += '\n';
    if (!parser.Feed(text, line)) {
      if (parser.out_of_memory()) throw std::bad_alloc();
      return BadCsvLine(path, line,
                        "a field has a quote in it or something behind its quotes; put the whole "
                        "field in quotes, and write each quote inside it twice");
    }
    const absl::Status status = GiveRows(parser, on_row);
    if (!status.ok()) return status;
    if (parser.open_bytes() > kLongestRecord) {
      return BadCsvLine(path, parser.open_line(), "a quote is not closed within 16 MiB");
    }
  }
  if (file.bad()) return Unreadable(path, base::SystemCause());
  if (!parser.Finish()) return BadCsvLine(path, parser.open_line(), "a quote is never closed");
  return GiveRows(parser, on_row);
}

}  // namespace muster::trainer
