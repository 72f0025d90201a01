#include "trainer/io/find_checkpoint.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "trainer/io/checkpoint_directory.h"
#include "trainer/io/shards/shard_files.h"

namespace muster::trainer {
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
