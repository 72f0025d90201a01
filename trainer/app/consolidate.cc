#include "trainer/app/commands.h"

#include <CLI/CLI.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "trainer/app/options/command_flags.h"
#include "trainer/io/checkpoint_file.h"
#include "trainer/io/formats/files.h"
#include "trainer/io/formats/shard_index.h"
#include "trainer/io/shard_plan.h"
#include "trainer/io/state_dict.h"
#include "trainer/io/torch_file.h"

namespace muster::trainer {
namespace {

namespace fs = std::filesystem;

// From this size on, progress is reported.
constexpr std::uint64_t kLargeCheckpoint = std::uint64_t{64} << 20;

struct ConsolidateOptions {
  std::string from;
  std::string to;
  int shards = 0;  // 0: one file
  std::string help;
};

absl::StatusOr<ConsolidateOptions> ParseConsolidate(int argc, const char* const* argv,
                                                    const std::string& program) {
  ConsolidateOptions options;
  CLI::App app(
      "Merges a sharded checkpoint into one file, which Python's torch.load reads, or splits one "
      "file into\nshards. The contents stay the same, and training can resume from either.",
      absl::StrCat(program, " consolidate"));
  app.add_option("PATH", options.from,
                 "A checkpoint: a directory of shards, a file, or a --checkpoint-dir, whose newest "
                 "complete checkpoint is used")
      ->required()
      ->type_name("");
  app.add_option("--out", options.to, "The file to write, or with --shards the directory")
      ->required()
      ->type_name("FILE|DIR");
  const FlagGroup group(app, "Options");
  group.Number("--shards", options.shards, 0, kMostShards,
               "Write a directory of this many shards; 0: one file");
  const absl::Status parsed = ParseCommand(app, argc, argv, options.help);
  if (!parsed.ok()) return parsed;
  return options;
}

std::string Megabytes(std::uint64_t bytes) {
  return absl::StrFormat("%.1f MB", static_cast<double>(bytes) / 1e6);
}

// Reports one of `files` files of about this size, if they are large in total.
void SayLarge(const char* verb, const std::string& name, std::uint64_t bytes, int files,
              std::ostream& out) {
  if (bytes * static_cast<std::uint64_t>(files) < kLargeCheckpoint) return;
  out << absl::StrCat(verb, name, ", ", Megabytes(bytes), "\n") << std::flush;
}

// The checkpoint to which `path` refers.
absl::StatusOr<std::string> FindIn(const std::string& path, const std::string& program) {
  absl::StatusOr<FoundCheckpoint> found = FindCheckpoint(path);
  if (!found.ok()) return found.status();
  SayWarnings(program, found->warnings);
  return std::move(found->path);
}

absl::StatusOr<Value> ReadEither(const std::string& path, std::ostream& out) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    SayLarge("reading ", path,
             fs::is_regular_file(path, ignored) ? fs::file_size(path, ignored) : 0, 1, out);
    return ReadTorchFile(path);
  }
  return ReadShards(path, [&out](int shard, int shards, std::uint64_t bytes) {
    SayLarge("read ", ShardName(shard, shards), bytes, shards, out);
  });
}

absl::Status MakeEmptyDirectory(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  const bool empty = !error && fs::is_empty(path, error);
  if (error) {
    return absl::InvalidArgumentError(
        absl::StrCat("make the directory ", path, ": ", error.message()));
  }
  if (empty) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("write shards into ", path, ": it is not empty; name a new directory"));
}

absl::StatusOr<std::uint64_t> WriteAllShards(const Value& value, const std::string& directory,
                                             int shards, std::ostream& out) {
  absl::StatusOr<ShardPlan> plan = PlanShards(value, shards);
  if (!plan.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("write shards into ", directory, ": ", plan.status().message()));
  }
  const absl::Status made = MakeEmptyDirectory(directory);
  if (!made.ok()) return made;
  std::uint64_t bytes = 0;
  for (int shard = 0; shard < shards; ++shard) {
    const auto place = static_cast<std::size_t>(shard);
    const absl::StatusOr<FileFacts> facts =
        WriteShard(directory, shard, shards, plan->tensors[place]);
    if (!facts.ok()) return facts.status();
    plan->index.files[place] = *facts;
    bytes += facts->bytes;
    SayLarge("wrote ", ShardName(shard, shards), facts->bytes, shards, out);
  }
  const absl::Status indexed = WriteShardIndex(directory, plan->index);
  if (!indexed.ok()) return indexed;
  return bytes;
}

}  // namespace

absl::StatusOr<int> RunConsolidate(int argc, const char* const* argv, const Registry& registry,
                                   std::ostream& out) {
  const absl::StatusOr<ConsolidateOptions> options = ParseConsolidate(argc, argv, registry.program);
  if (!options.ok()) return options.status();
  if (!options->help.empty()) {
    out << options->help;
    return 0;
  }
  const absl::StatusOr<std::string> path = FindIn(options->from, registry.program);
  if (!path.ok()) return path.status();
  if (IsSameFile(options->to, *path) ||
      IsSameFile(fs::path(options->to).parent_path().string(), *path)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "consolidate: --out ", options->to, " would overwrite ", *path, "; name another place"));
  }
  std::ostream& said = IsStdout(options->to) ? std::cerr : out;
  const absl::StatusOr<Value> value = ReadEither(*path, said);
  if (!value.ok()) return value.status();
  if (options->shards == 0) {
    const absl::Status written = WriteTorchFile(*value, options->to);
    if (!written.ok()) return written;
    std::error_code ignored;
    said << absl::StrCat(options->to, ": ", Megabytes(fs::file_size(options->to, ignored)), ", of ",
                         *path, "\n");
    return 0;
  }
  const auto bytes = WriteAllShards(*value, options->to, options->shards, out);
  if (!bytes.ok()) return bytes.status();
  out << absl::StrCat(options->to, ": ", options->shards,
                      options->shards == 1 ? " shard" : " shards", ", ", Megabytes(*bytes), ", of ",
                      *path, "\n");
  return 0;
}

}  // namespace muster::trainer
