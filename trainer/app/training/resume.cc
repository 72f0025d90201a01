#include "trainer/app/training/resume.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "base/failure.h"
#include "trainer/app/training/broadcast.h"
#include "trainer/io/byte_source.h"
#include "trainer/io/checkpoint_directory.h"
#include "trainer/io/safetensors.h"
#include "trainer/io/torch_file.h"

namespace muster::trainer {
namespace {

// Puts a fact ahead of a status's sentence.
absl::Status Prefixed(const std::string& fact, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(fact, status.message()));
}

// What rank 0 goes on from.
absl::StatusOr<std::optional<Resumable>> Read(const CheckpointOptions& options) {
  if (options.resume == "none") return std::nullopt;
  if (options.resume != "auto") {
    absl::StatusOr<Value> value = ReadTorchFile(options.resume);
    if (!value.ok()) return Prefixed("resume: ", value.status());
    return Resumable{.path = options.resume, .snapshot = *std::move(value), .warnings = {}};
  }
  if (options.directory.empty()) return std::nullopt;
  const auto directory = CheckpointDirectory::Open(options.directory, options.keep);
  if (!directory.ok()) return directory.status();
  auto loaded = directory->LoadLatest();
  if (!loaded.ok()) return Prefixed("resume: ", loaded.status());
  if (!loaded->has_value()) return std::nullopt;
  return Resumable{.path = (*loaded)->path,
                   .snapshot = std::move((*loaded)->value),
                   .warnings = std::move((*loaded)->warnings)};
}

absl::StatusOr<std::string> ReadBytes(const std::string& path) {
  const absl::StatusOr<std::unique_ptr<FileSource>> file = FileSource::Open(path);
  if (!file.ok()) return file.status();
  std::string bytes((*file)->size(), '\0');
  const absl::Status read = (*file)->Read(0, bytes.data(), bytes.size());
  if (!read.ok()) return read;
  return bytes;
}

// The value in the bytes of a file of torch.save, by way of a file that has no name.
absl::StatusOr<Value> ValueIn(const std::string& bytes) {
  const int fd = memfd_create("checkpoint", MFD_CLOEXEC);
  std::string_view rest = bytes;
  while (fd >= 0 && !rest.empty()) {
    const ssize_t written = write(fd, rest.data(), rest.size());
    if (written < 0 && errno != EINTR) break;
    if (written > 0) rest.remove_prefix(static_cast<std::size_t>(written));
  }
  absl::StatusOr<Value> value =
      fd < 0 || !rest.empty()
          ? base::SystemFailure(absl::StatusCode::kUnavailable, "keep a checkpoint in memory")
          : ReadTorchFile(absl::StrCat("/proc/self/fd/", fd));
  if (fd >= 0) close(fd);
  return value;
}

}  // namespace

absl::StatusOr<std::optional<Resumable>> FindResumable(const CheckpointOptions& options,
                                                       ProcessGroup& group) {
  const bool leads = group.rank() == 0;
  absl::StatusOr<std::optional<Resumable>> mine = std::optional<Resumable>();
  if (leads) mine = Read(options);
  if (group.size() == 1) return mine;

  const auto path =
      FromRankZero(!mine.ok() ? absl::StatusOr<std::string>(mine.status())
                              : absl::StatusOr<std::string>(*mine ? (*mine)->path : std::string()),
                   group);
  if (!path.ok()) return path.status();
  if (path->empty()) return std::nullopt;
  absl::StatusOr<std::string> bytes = leads ? ReadBytes(*path) : std::string();
  bytes = FromRankZero(bytes, group);
  if (!bytes.ok()) return bytes.status();
  if (leads) return mine;
  absl::StatusOr<Value> snapshot = ValueIn(*bytes);
  if (!snapshot.ok()) return Prefixed(absl::StrCat("resume from ", *path, ": "), snapshot.status());
  return Resumable{.path = *path, .snapshot = *std::move(snapshot), .warnings = {}};
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
