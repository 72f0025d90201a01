#include "trainer/data/tokens/data_files.h"

#include <algorithm>
#include <filesystem>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "trainer/data/datasets/unreadable.h"

namespace muster::trainer {
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

}  // namespace muster::trainer
