#include "trainer/data/samples/data_files.h"

#include <csv.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <new>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "base/failure.h"

namespace muster::trainer {
absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  // Not blocking: opening a named pipe without a writer would hang, only to be rejected below.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return Unreadable(path, base::SystemCause());
  struct stat info {};
  std::string why;
  void* bytes = MAP_FAILED;
  if (fstat(fd, &info) != 0) {
    why = base::SystemCause();
  } else if (!S_ISREG(info.st_mode)) {
    why = S_ISDIR(info.st_mode) ? "is a directory" : "not a regular file";
  } else if (info.st_size == 0) {
    why = "is empty";
  } else {
    bytes = mmap(nullptr, static_cast<std::size_t>(info.st_size), PROT_READ, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED) why = base::SystemCause();
  }
  close(fd);  // the mapping remains
  if (!why.empty()) return Unreadable(path, why);
  return std::shared_ptr<const MappedFile>(
      new MappedFile(static_cast<const std::uint8_t*>(bytes), info.st_size));
}

MappedFile::~MappedFile() {
  munmap(const_cast<std::uint8_t*>(bytes_), static_cast<std::size_t>(size_));
}

namespace {

namespace fs = std::filesystem;

constexpr char kTrainName[] = "train.bin";
constexpr char kTestName[] = "val.bin";

bool IsDirectory(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool HasFile(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

absl::StatusOr<std::vector<std::string>> FilesIn(const std::string& directory,
                                                 const std::string& ending) {
  std::error_code error;
  std::vector<std::string> files;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code ignored;
    if (name.front() != '.' && absl::EndsWith(name, ending) && entry->is_regular_file(ignored) &&
        entry->file_size(ignored) > 0) {
      files.push_back(entry->path().string());
    }
  }
  if (error) return Unreadable(directory, error.message());
  if (files.empty()) {
    return Unreadable(directory,
                      absl::StrCat("the directory has no file", ending.empty() ? "" : " *", ending,
                                   " with something in it"));
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ListFiles(const std::vector<std::string>& paths,
                                                   const std::string& ending) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (!IsDirectory(path)) {
      files.push_back(path);
      continue;
    }
    const absl::StatusOr<std::vector<std::string>> in = FilesIn(path, ending);
    if (!in.ok()) return in.status();
    files.insert(files.end(), in->begin(), in->end());
  }
  return files;
}

absl::StatusOr<TokenFiles> ListTokenFiles(const std::vector<std::string>& paths) {
  std::vector<std::string> named;
  TokenFiles files;
  for (fs::path path : paths) {
    if (IsDirectory(path) && HasFile(path / kTrainName)) path /= kTrainName;
    named.push_back(path.string());
    const fs::path test = path.parent_path() / kTestName;
    if (path.filename() == kTrainName && HasFile(test)) files.test.push_back(test.string());
  }
  absl::StatusOr<std::vector<std::string>> train = ListFiles(named, ".bin");
  if (!train.ok()) return train.status();
  files.train = *std::move(train);
  return files;
}

namespace {

constexpr std::size_t kLongestRecord = std::size_t{16} << 20;
constexpr std::size_t kBufferStep = std::size_t{1} << 20;
constexpr absl::string_view kByteOrderMark = "\xef\xbb\xbf";

// libcsv's parser, fed line by line to know the line on which a record begins.
class RecordParser {
 public:
  RecordParser() {
    if (csv_init(&parser_, CSV_STRICT | CSV_STRICT_FINI) != 0) throw std::bad_alloc();
    // The buffer's growth step; with the default of 128 bytes a long field is copied so often that
    // it takes minutes.
    csv_set_blk_size(&parser_, kBufferStep);
  }
  ~RecordParser() { csv_free(&parser_); }
  RecordParser(const RecordParser&) = delete;
  RecordParser& operator=(const RecordParser&) = delete;

  // Parses `text`, line `line` of the file including its end. False if it is not valid CSV.
  bool Feed(const std::string& text, std::int64_t line) {
    if (parser_.pstate == kBetweenRecords) {
      open_.line = line;
      fed_ = 0;
    }
    fed_ += text.size();
    return csv_parse(&parser_, text.data(), text.size(), OnField, OnRecord, this) == text.size();
  }
  // The end of the file, which may end the last record. False inside quotes.
  bool Finish() { return csv_fini(&parser_, OnField, OnRecord, this) == 0; }

  bool out_of_memory() { return csv_error(&parser_) == CSV_ENOMEM; }
  // The records completed since the last call.
  std::vector<CsvRow> TakeRows() { return std::exchange(whole_, {}); }
  // Where the unfinished record begins, and its bytes so far.
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
