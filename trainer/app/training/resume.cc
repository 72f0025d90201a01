#include "trainer/app/training/resume.h"

#include <utility>

#include <ATen/core/Tensor.h>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "trainer/app/training/broadcast.h"
#include "trainer/io/checkpoint_directory.h"
#include "trainer/io/safetensors.h"
#include "trainer/io/torch_file.h"

namespace muster::trainer {
namespace {

// Puts a fact ahead of a status's sentence.
absl::Status Prefixed(const std::string& fact, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(fact, status.message()));
}

// The file that rank 0 goes on from; empty: none. Adds to `warnings`.
absl::StatusOr<std::string> Choose(const CheckpointOptions& options,
                                   std::vector<std::string>* warnings) {
  if (options.resume == "none") return std::string();
  if (options.resume != "auto") return options.resume;
  if (options.directory.empty()) return std::string();
  const auto directory = CheckpointDirectory::Open(options.directory, options.keep);
  if (!directory.ok()) return directory.status();
  const auto found = directory->FindNewest();
  if (!found.ok()) return Prefixed("resume: ", found.status());
  if (!found->has_value()) return std::string();
  *warnings = (*found)->warnings;
  return (*found)->path;
}

}  // namespace

absl::StatusOr<std::optional<Resumable>> FindResumable(const CheckpointOptions& options,
                                                       ProcessGroup& group) {
  Resumable resumable;
  absl::StatusOr<std::string> path = std::string();
  if (group.rank() == 0) path = Choose(options, &resumable.warnings);
  path = FromRankZero(path, group);
  if (!path.ok()) return path.status();
  if (path->empty()) return std::nullopt;
  resumable.path = *path;
  const absl::StatusOr<at::Tensor> bytes = FileFromRank(0, *path, group);
  if (!bytes.ok()) return Prefixed("resume: ", bytes.status());
  absl::StatusOr<Value> snapshot = ReadTorchBytes(*bytes);
  if (!snapshot.ok())
    return Prefixed(absl::StrCat("resume: read ", *path, ": "), snapshot.status());
  resumable.snapshot = *std::move(snapshot);
  return resumable;
}

absl::StatusOr<std::string> InitFrom(const CheckpointOptions& options, Model& model) {
  if (options.init_from.empty()) return std::string();
  const std::string attempt = absl::StrCat("take parameters from ", options.init_from, ": ");
  Value state;
  if (absl::EndsWith(options.init_from, ".safetensors")) {
    const absl::StatusOr<SafetensorsContents> contents = ReadSafetensors(options.init_from);
    if (!contents.ok()) return Prefixed("--init-from: ", contents.status());
    state = StateDictValue(contents->tensors);
  } else {
    const absl::StatusOr<Value> file = ReadTorchFile(options.init_from);
    if (!file.ok()) return Prefixed("--init-from: ", file.status());
    const absl::StatusOr<const Value*> found = FindStateDict(*file);
    if (!found.ok()) return Prefixed(attempt, found.status());
    state = **found;
  }
  const auto report = LoadStateDict(state, model.StateDict(), options.init);
  if (!report.ok()) return Prefixed(attempt, report.status());
  return absl::StrCat("parameters from ", options.init_from, ": ", report->Sentence());
}

}  // namespace muster::trainer
