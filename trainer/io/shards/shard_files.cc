#include "trainer/io/shards/shard_files.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_format.h"

namespace muster::trainer {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPattern = "shard-#####-of-#####.safetensors";
constexpr std::string_view kUnfinished = ".tmp";  // DurableFile's

// Whether `name` is that of a shard of any checkpoint.
bool IsShardName(std::string_view name) {
  return name.size() == kPattern.size() &&
         std::equal(name.begin(), name.end(), kPattern.begin(), [](char c, char wanted) {
           return wanted == '#' ? std::isdigit(static_cast<unsigned char>(c)) != 0 : c == wanted;
         });
}

bool IsOurs(std::string_view name) {
  if (name.ends_with(kUnfinished)) name.remove_suffix(kUnfinished.size());
  return IsShardName(name) || name == kShardIndexName;
}

std::vector<fs::path> FilesIn(const std::string& directory) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (fs::directory_iterator entry(directory, ignored), end; entry != end;
       entry.increment(ignored)) {
    files.push_back(entry->path());
  }
  return files;
}

}  // namespace

std::string ShardName(int shard, int shards) {
  return absl::StrFormat("shard-%05d-of-%05d.safetensors", shard + 1, shards);
}

int ShardOf(std::string_view name, int shards) {
  if (!IsShardName(name)) return -1;
  int shard = 0;
  for (const char digit : name.substr(6, 5)) shard = shard * 10 + (digit - '0');
  return shard >= 1 && shard <= shards && name == ShardName(shard - 1, shards) ? shard - 1 : -1;
}

bool HasShardIndex(const std::string& directory) {
  std::error_code ignored;
  return fs::exists(fs::path(directory) / kShardIndexName, ignored);
}

void RemoveShards(const std::string& directory) {
  std::error_code ignored;
  // Without it the rest is what a killed run leaves, whatever happens from here on.
  fs::remove(fs::path(directory) / kShardIndexName, ignored);
  for (const fs::path& file : FilesIn(directory)) {
    const bool ours =
        IsOurs(file.filename().string()) && fs::is_regular_file(fs::symlink_status(file, ignored));
    if (ours) fs::remove(file, ignored);
  }
  fs::remove(directory, ignored);
}

void RemoveOtherShards(const std::string& directory, int shards) {
  std::error_code ignored;
  for (const fs::path& file : FilesIn(directory)) {
    const std::string name = file.filename().string();
    if (IsOurs(name) && name != kShardIndexName && ShardOf(name, shards) < 0) {
      fs::remove(file, ignored);
    }
  }
}

}  // namespace muster::trainer
