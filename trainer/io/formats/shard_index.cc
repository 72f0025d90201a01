#include "trainer/io/formats/shard_index.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "trainer/io/formats/safetensors_header.h"

namespace muster::trainer {
namespace {

using nlohmann::json;

constexpr char kFormat[] = "muster-train checkpoint";
constexpr int kVersion = 1;
// Three brackets for each level of a tree, which has a hundred at most.
constexpr int kDeepestIndex = 310;

// What is no UTF-8, such as a path among the options may hold, becomes U+FFFD.
std::string Compact(const json& value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
}

// What stands in the member "crc32" of `index`, which does not have it yet.
std::string ChecksumText(const json& index) {
  FileFacts facts;
  facts.Add(Compact(index));
  return absl::StrFormat("%08x", facts.crc32);
}

absl::Status BadIndex(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("it is damaged: ", what));
}

// The member `name` of an object, or null.
const json* Member(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() ? &*found : nullptr;
}

std::optional<FileFacts> ReadFacts(const json& file) {
  const json* bytes = file.is_object() ? Member(file, "bytes") : nullptr;
  const json* crc = file.is_object() ? Member(file, "crc32") : nullptr;
  std::uint32_t number = 0;
  if (bytes == nullptr || !bytes->is_number_unsigned() || crc == nullptr || !crc->is_string() ||
      !absl::SimpleHexAtoi(crc->get<std::string>(), &number)) {
    return std::nullopt;
  }
  return FileFacts{bytes->get<std::uint64_t>(), number};
}

absl::Status ReadFiles(const json& files, ShardIndex* index) {
  if (!files.is_object() || files.empty() || files.size() > std::size_t{kMostShards}) {
    return BadIndex("it has no list of its files");
  }
  const int shards = static_cast<int>(files.size());
  index->files.resize(files.size());
  for (const auto& [name, file] : files.items()) {
    const int shard = ShardOf(name, shards);
    if (shard < 0) {
      return BadIndex(absl::StrCat("it names the file ", name, ", which is none of ", shards,
                                   shards == 1 ? " shard" : " shards"));
    }
    const std::optional<FileFacts> facts = ReadFacts(file);
    if (!facts) return BadIndex(absl::StrCat("it does not say size and checksum of ", name));
    index->files[static_cast<std::size_t>(shard)] = *facts;
  }
  return absl::OkStatus();
}

absl::Status ReadWeightMap(const json& map, ShardIndex* index) {
  if (!map.is_object()) return BadIndex("it has no weight_map");
  for (const auto& [name, file] : map.items()) {
    const int shard = file.is_string()
                          ? ShardOf(file.get<std::string>(), static_cast<int>(index->files.size()))
                          : -1;
    if (shard < 0) return BadIndex(absl::StrCat(name, " is in none of its files"));
    index->shard_of.emplace_hint(index->shard_of.end(), name, shard);
  }
  return absl::OkStatus();
}

// The first name in `tree` that `known` lacks; null when there is none. As deep as the tree, which
// was read here.
const std::string* UnknownName(const NamedTree& tree, const std::map<std::string, int>& known) {
  if (tree.tensor() != nullptr) {
    return known.count(tree.tensor()->name) > 0 ? nullptr : &tree.tensor()->name;
  }
  if (tree.list() != nullptr) {
    for (const NamedTree& item : *tree.list()) {
      if (const std::string* unknown = UnknownName(item, known)) return unknown;
    }
  }
  if (tree.dict() != nullptr) {
    for (const auto& [key, item] : *tree.dict()) {
      if (const std::string* unknown = UnknownName(item, known)) return unknown;
    }
  }
  return nullptr;
}

absl::Status CheckMetadata(const json* metadata, ShardIndex* index) {
  const json* format =
      metadata != nullptr && metadata->is_object() ? Member(*metadata, "format") : nullptr;
  if (format == nullptr || *format != kFormat) {
    return absl::InvalidArgumentError("it is not the index of a checkpoint of muster-train");
  }
  const json* version = Member(*metadata, "version");
  if (version == nullptr || *version != kVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("it has version ", version != nullptr ? Compact(*version) : "none",
                     " of this format, and only version ", kVersion, " can be read here"));
  }
  const json* size = Member(*metadata, "total_size");
  if (size == nullptr || !size->is_number_unsigned()) return BadIndex("it has no total_size");
  index->tensor_bytes = size->get<std::uint64_t>();
  return absl::OkStatus();
}

}  // namespace

std::string ShardIndexText(const ShardIndex& index) {
  const int shards = static_cast<int>(index.files.size());
  json all = {{"metadata",
               {{"total_size", index.tensor_bytes}, {"format", kFormat}, {"version", kVersion}}},
              {"weight_map", json::object()},
              {"files", json::object()},
              {"checkpoint", TreeJson(index.tree)}};
  for (const auto& [name, shard] : index.shard_of)
    all["weight_map"][name] = ShardName(shard, shards);
  for (int shard = 0; shard < shards; ++shard) {
    const FileFacts& facts = index.files[static_cast<std::size_t>(shard)];
    all["files"][ShardName(shard, shards)] = {{"bytes", facts.bytes},
                                              {"crc32", absl::StrFormat("%08x", facts.crc32)}};
  }
  // What people look for comes first, and the long tree is one line.
  const std::string checksum = ChecksumText(all);
  std::string text = "{\n";
  for (const char* name : {"metadata", "weight_map", "files"}) {
    absl::StrAppend(&text, "\"", name, "\": ",
                    all[name].dump(2, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace),
                    ",\n");
  }
  absl::StrAppend(&text, "\"checkpoint\": ", Compact(all["checkpoint"]), ",\n\"crc32\": \"",
                  checksum, "\"\n}\n");
  return text;
}

absl::StatusOr<ShardIndex> ReadShardIndex(std::string_view text) {
  if (!IsShallow(text, kDeepestIndex)) return BadIndex("its brackets are too deep");
  json all = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!all.is_object()) return BadIndex("it is not JSON, or truncated");
  ShardIndex index;
  absl::Status status = CheckMetadata(Member(all, "metadata"), &index);
  if (!status.ok()) return status;
  const json* stored = Member(all, "crc32");
  const json checksum = stored != nullptr ? *stored : json();
  all.erase("crc32");
  if (checksum != ChecksumText(all)) return BadIndex("its checksum does not match");
  status = ReadFiles(all["files"], &index);
  if (status.ok()) status = ReadWeightMap(all["weight_map"], &index);
  if (!status.ok()) return status;
  absl::StatusOr<NamedTree> tree = ReadTreeJson(all["checkpoint"]);
  if (!tree.ok()) return tree.status();
  index.tree = *std::move(tree);
  if (const std::string* unknown = UnknownName(index.tree, index.shard_of)) {
    return BadIndex(absl::StrCat("its checkpoint has the tensor ", *unknown,
                                 ", which is in none of its files"));
  }
  return index;
}

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
