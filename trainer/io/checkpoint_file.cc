#include "trainer/io/checkpoint_file.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <ATen/ops/empty.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "trainer/io/checkpoint_directory.h"
#include "trainer/io/formats/files.h"
#include "trainer/io/formats/safetensors_header.h"
#include "trainer/io/formats/shard_index.h"
#include "trainer/io/formats/value_tree.h"
#include "trainer/io/safetensors.h"
#include "trainer/io/torch_file.h"
#include "trainer/runtime/failure.h"

namespace muster::trainer {
namespace {

bool IsFolder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

}  // namespace

absl::StatusOr<Value> ReadCheckpoint(const std::string& path) {
  return IsFolder(path) ? ReadShards(path) : ReadTorchFile(path);
}

absl::Status CheckCheckpoint(const std::string& path) {
  return IsFolder(path) ? CheckShards(path) : CheckTorchFile(path);
}

namespace {

using TensorMap = std::map<std::string, at::Tensor>;

constexpr std::uint64_t kLargestIndex = 100'000'000;
constexpr std::size_t kCheckedPiece = std::size_t{1} << 20;

std::string PathIn(const std::string& directory, const std::string& name) {
  return absl::StrCat(directory, "/", name);
}

std::string ShardPath(const std::string& directory, const ShardIndex& index, int shard) {
  return PathIn(directory, ShardName(shard, static_cast<int>(index.files.size())));
}

absl::StatusOr<ShardIndex> ReadIndexIn(const std::string& directory) {
  const absl::StatusOr<std::string> text = ReadIndexText(directory);
  if (!text.ok()) return text.status();
  absl::StatusOr<ShardIndex> index = ReadShardIndex(*text);
  if (index.ok()) return index;
  return ReadFailure(PathIn(directory, kShardIndexName), index.status());
}

absl::Status CheckFacts(const ByteSource& source, const FileFacts& wanted) {
  if (source.size() != wanted.bytes) {
    return absl::InvalidArgumentError(absl::StrCat("it is damaged: it has ", source.size(),
                                                   " bytes, and the index says ", wanted.bytes));
  }
  FileFacts facts;
  std::vector<char> piece(std::min<std::uint64_t>(kCheckedPiece, source.size()));
  while (facts.bytes < source.size()) {
    const std::size_t count = std::min<std::uint64_t>(piece.size(), source.size() - facts.bytes);
    const absl::Status read = source.Read(facts.bytes, piece.data(), count);
    if (!read.ok()) return read;
    facts.Add({piece.data(), count});
  }
  if (facts == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError("it is damaged: its checksum is not the one in the index");
}

// Checks all of shard `shard` but the values of bools. Errors are one clause.
absl::StatusOr<SafetensorsHeader> CheckShard(const ShardIndex& index, int shard,
                                             const ByteSource& source) {
  const absl::Status same = CheckFacts(source, index.files[static_cast<std::size_t>(shard)]);
  if (!same.ok()) return same;
  absl::StatusOr<SafetensorsHeader> header = ReadSafetensorsHeader(source);
  if (!header.ok()) return header;
  for (const SafetensorsEntry& entry : header->entries) {
    const auto known = index.shard_of.find(entry.name);
    if (known == index.shard_of.end() || known->second != shard) {
      return absl::InvalidArgumentError(
          absl::StrCat("it has ", entry.name, ", which the index says is not there"));
    }
  }
  // Names in a header are unique, so that with as many of them all are there.
  const auto wanted = std::count_if(index.shard_of.begin(), index.shard_of.end(),
                                    [shard](const auto& tensor) { return tensor.second == shard; });
  if (static_cast<std::size_t>(wanted) == header->entries.size()) return header;
  return absl::InvalidArgumentError(
      absl::StrCat("it has ", header->entries.size(), " tensors, and the index says ", wanted));
}

// The tensor of `entry` in the contents of its file: a view where it is aligned.
at::Tensor ViewOf(const SafetensorsEntry& entry, std::uint64_t data_offset,
                  const at::Tensor& file) {
  const std::uint64_t begin = data_offset + entry.offset;
  const std::size_t element = ElementSize(entry.dtype);
  if (entry.size > 0 && begin % element == 0) {
    return file.narrow(0, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(entry.size))
        .view(ScalarTypeOf(entry.dtype))
        .view(entry.sizes);
  }
  const at::Tensor own = EmptyTensor(entry.dtype, static_cast<std::int64_t>(entry.size / element));
  const std::string_view bytes = BytesOf(file).substr(begin, entry.size);
  std::copy(bytes.begin(), bytes.end(), static_cast<char*>(own.data_ptr()));
  return own.view(entry.sizes);
}

absl::Status AddTensors(const ShardIndex& index, int shard, const at::Tensor& file, bool copy,
                        TensorMap* tensors) {
  const absl::StatusOr<SafetensorsHeader> header =
      CheckShard(index, shard, MemorySource(BytesOf(file)));
  if (!header.ok()) return header.status();
  for (const SafetensorsEntry& entry : header->entries) {
    const at::Tensor tensor = ViewOf(entry, header->data_offset, file);
    const std::string_view bytes =
        BytesOf(file).substr(header->data_offset + entry.offset, entry.size);
    if (entry.dtype == Dtype::kBool && !AreBools(bytes)) {
      return absl::InvalidArgumentError(
          absl::StrCat("it is damaged: ", entry.name, " has a bool neither true nor false"));
    }
    tensors->emplace(entry.name, copy ? tensor.clone() : tensor);
  }
  return absl::OkStatus();
}

absl::StatusOr<Value> ValueOf(const ShardIndex& index, const TensorMap& tensors) {
  const auto find = [&](const TensorName& name, const TreePlace&) -> absl::StatusOr<Value> {
    return Value(tensors.at(name.name));
  };
  return MapTensors<at::Tensor>(index.tree, find);
}

absl::StatusOr<at::Tensor> ReadBytes(const std::string& path) {
  const absl::StatusOr<std::unique_ptr<FileSource>> source = FileSource::Open(path);
  if (!source.ok()) return source.status();
  const at::Tensor bytes = at::empty({static_cast<std::int64_t>((*source)->size())}, at::kByte);
  const absl::Status read = (*source)->Read(0, bytes.data_ptr(), bytes.nbytes());
  if (!read.ok()) return read;
  return bytes;
}

}  // namespace

absl::StatusOr<FileFacts> WriteShard(const std::string& directory, int shard, int shards,
                                     const std::vector<NamedTensor>& tensors) {
  return WriteSafetensors({.tensors = tensors, .metadata = {{"format", "pt"}}},
                          PathIn(directory, ShardName(shard, shards)), Folder::kOfCheckpoints);
}

absl::Status WriteShardIndex(const std::string& directory, const ShardIndex& index) {
  return WriteDurably(PathIn(directory, kShardIndexName), ShardIndexText(index),
                      Folder::kOfCheckpoints);
}

absl::StatusOr<std::string> ReadIndexText(const std::string& directory) {
  const std::string path = PathIn(directory, kShardIndexName);
  const absl::StatusOr<std::unique_ptr<FileSource>> source = FileSource::Open(path);
  if (!source.ok()) return source.status();
  if ((*source)->size() > kLargestIndex) {
    return absl::InvalidArgumentError(
        absl::StrCat("read ", path, ": it is damaged: no index is that large"));
  }
  std::string text((*source)->size(), '\0');
  const absl::Status read = (*source)->Read(0, text.data(), text.size());
  if (!read.ok()) return read;
  return text;
}

absl::StatusOr<Value> ReadShards(const std::string& directory, const OnShard& on_shard) {
  const absl::StatusOr<ShardIndex> index = ReadIndexIn(directory);
  if (!index.ok()) return index.status();
  const int shards = static_cast<int>(index->files.size());
  TensorMap tensors;
  for (int shard = 0; shard < shards; ++shard) {
    const std::string path = ShardPath(directory, *index, shard);
    try {
      const absl::StatusOr<at::Tensor> bytes = ReadBytes(path);
      if (!bytes.ok()) return bytes.status();
      const absl::Status added = AddTensors(*index, shard, *bytes, /*copy=*/true, &tensors);
      if (!added.ok()) return ReadFailure(path, added);
      if (on_shard) on_shard(shard, shards, bytes->nbytes());
    } catch (const std::exception& error) {  // there is no memory for the tensors
      return absl::UnavailableError(absl::StrCat("read ", path, ": ", OneLine(error)));
    }
  }
  return ValueOf(*index, tensors);
}

absl::Status CheckShards(const std::string& directory) {
  const absl::StatusOr<ShardIndex> index = ReadIndexIn(directory);
  if (!index.ok()) return index.status();
  for (int shard = 0; shard < static_cast<int>(index->files.size()); ++shard) {
    const std::string path = ShardPath(directory, *index, shard);
    const absl::StatusOr<std::unique_ptr<FileSource>> source = FileSource::Open(path);
    if (!source.ok()) return source.status();
    const absl::Status whole = CheckShard(*index, shard, **source).status();
    if (!whole.ok()) return ReadFailure(path, whole);
  }
  return absl::OkStatus();
}

absl::StatusOr<Value> AssembleShards(const std::string& directory, const ShardIndex& index,
                                     const std::vector<at::Tensor>& files) {
  TensorMap tensors;
  for (std::size_t shard = 0; shard < files.size(); ++shard) {
    const std::string path = ShardPath(directory, index, static_cast<int>(shard));
    try {
      const absl::Status added =
          AddTensors(index, static_cast<int>(shard), files[shard], /*copy=*/false, &tensors);
      if (!added.ok()) return ReadFailure(path, added);
    } catch (const std::exception& error) {
      return absl::UnavailableError(absl::StrCat("read ", path, ": ", OneLine(error)));
    }
  }
  return ValueOf(index, tensors);
}

namespace {

namespace fs = std::filesystem;

absl::StatusOr<FoundCheckpoint> FindInDirectory(const std::string& path) {
  const auto directory = CheckpointDirectory::Open(path, /*keep=*/1);
  if (!directory.ok()) return directory.status();
  auto found = directory->FindNewest();
  if (!found.ok()) return found.status();
  if (found->has_value()) return FoundCheckpoint{(*found)->path, std::move((*found)->warnings)};
  return absl::InvalidArgumentError(
      absl::StrCat("read a checkpoint from ", path, ": it has neither an ", kShardIndexName,
                   " nor checkpoints (step-000000000100, step-000000000100.pt, ...)"));
}

// The checkpoint that the file names, or itself, whatever it is called, if it names none.
absl::StatusOr<std::string> NamedBy(const fs::path& mark) {
  const bool best = mark.filename() == "best";
  std::error_code ignored;
  if ((!best && mark.filename() != "latest") || !fs::is_regular_file(mark, ignored)) {
    return mark.string();
  }
  const fs::path folder = mark.has_parent_path() ? mark.parent_path() : fs::path(".");
  const auto directory = CheckpointDirectory::Open(folder.string(), /*keep=*/1);
  if (!directory.ok()) return directory.status();
  std::optional<std::int64_t> step;
  if (best) {
    step = directory->ReadBest();
  } else if (const auto latest = directory->ReadLatest()) {
    step = latest->step;
    if (!step) {
      return absl::InvalidArgumentError(absl::StrCat("read the checkpoint that ", mark.string(),
                                                     " names: the last run has saved none yet"));
    }
  }
  return step ? directory->PathOf(*step) : mark.string();
}

}  // namespace

absl::StatusOr<FoundCheckpoint> FindCheckpoint(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored) && !HasShardIndex(path)) return FindInDirectory(path);
  absl::StatusOr<std::string> named = NamedBy(path);
  if (!named.ok()) return named.status();
  return FoundCheckpoint{*std::move(named), {}};
}

}  // namespace muster::trainer
