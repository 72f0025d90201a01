#include "trainer/io/checkpoint_directory.h"

#include <fcntl.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "base/failure.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "trainer/io/checkpoint_file.h"
#include "trainer/io/formats/files.h"
#include "trainer/io/formats/shard_index.h"
#include "trainer/io/torch_file.h"

namespace muster::trainer {
namespace {

namespace fs = std::filesystem;

constexpr char kLatest[] = "latest";
constexpr char kBest[] = "best";
constexpr char kNone[] = "none";
constexpr char kJob[] = "job ";              // ahead of it, on the second line of `latest`
constexpr char kStrangers[] = "strangers ";  // ahead of their steps, on a third line if there are
constexpr std::string_view kStart = "step-";
constexpr std::string_view kEnd = ".pt";  // of a file; a directory of shards has no end
constexpr char kSign[] = ".sign-";

// The step of a checkpoint's name; nullopt for other names, also unfinished ones.
std::optional<std::int64_t> StepOf(std::string_view name) {
  if (!name.starts_with(kStart)) return std::nullopt;
  name.remove_prefix(kStart.size());
  if (name.ends_with(kEnd)) name.remove_suffix(kEnd.size());
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (error != std::errc() || end != name.data() + name.size() || step < 0) return std::nullopt;
  return step;
}

// Twelve digits, so that names sort as the steps do.
std::string FolderName(std::int64_t step) {
  return absl::StrFormat("step-%012d", step);
}

std::string NameOf(std::int64_t step) {
  return FolderName(step) + std::string(kEnd);
}

// `steps` are in ascending order.
bool IsIn(const std::vector<std::int64_t>& steps, std::int64_t step) {
  return std::binary_search(steps.begin(), steps.end(), step);
}

// Those of `steps` that are not in `others`; both in ascending order.
std::vector<std::int64_t> Without(const std::vector<std::int64_t>& others,
                                  const std::vector<std::int64_t>& steps) {
  std::vector<std::int64_t> rest;
  std::set_difference(steps.begin(), steps.end(), others.begin(), others.end(),
                      std::back_inserter(rest));
  return rest;
}

// Of shards without an index.
std::string EndedEarly(const std::string& folder) {
  return absl::StrCat("the run that wrote ", folder, " ended before it was whole");
}

}  // namespace

absl::StatusOr<CheckpointDirectory> CheckpointDirectory::Open(std::string path, int keep) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error && !fs::is_directory(path)) error = std::make_error_code(std::errc::not_a_directory);
  if (error) {
    return absl::InvalidArgumentError(
        absl::StrCat("make the directory ", path, ": ", error.message()));
  }
  return CheckpointDirectory(std::move(path), std::max(keep, 1));
}

std::optional<CheckpointDirectory::Latest> CheckpointDirectory::ReadLatest() const {
  std::ifstream file(fs::path(path_) / kLatest);
  std::string name;
  std::string job;
  if (!std::getline(file, name)) return std::nullopt;
  Latest latest;
  if (name != kNone) {
    latest.step = StepOf(name);
    if (!latest.step) return std::nullopt;
  }
  if (std::getline(file, job) && job.starts_with(kJob)) latest.job = job.substr(sizeof(kJob) - 1);
  std::string strangers;
  if (std::getline(file, strangers) && strangers.starts_with(kStrangers)) {
    std::istringstream steps(strangers.substr(sizeof(kStrangers) - 1));
    for (std::int64_t step = 0; steps >> step;) latest.strangers.push_back(step);
    std::sort(latest.strangers.begin(), latest.strangers.end());
  }
  return latest;
}

absl::Status CheckpointDirectory::WriteLatest(const Latest& latest) const {
  const absl::Status status = WriteDurably(
      (fs::path(path_) / kLatest).string(),
      absl::StrCat(latest.step ? StoredName(*latest.step) : kNone, "\n", kJob, latest.job, "\n",
                   latest.strangers.empty()
                       ? ""
                       : absl::StrCat(kStrangers, absl::StrJoin(latest.strangers, " "), "\n")),
      Folder::kOfCheckpoints);
  const std::optional<std::int64_t> best = ReadBest();
  if (status.ok() && best && IsIn(latest.strangers, *best)) {
    std::error_code ignored;
    fs::remove(fs::path(path_) / kBest, ignored);
  }
  return status;
}

std::vector<std::int64_t> CheckpointDirectory::StrangersTo(std::optional<std::int64_t> from) const {
  std::vector<std::int64_t> steps = Steps();
  if (!from) return steps;
  const std::vector<std::int64_t> now = ReadLatest().value_or(Latest()).strangers;
  const auto is_stranger = [&now](std::int64_t step) { return IsIn(now, step); };
  std::erase_if(steps, [&](std::int64_t step) {
    return step == *from || (step < *from && !is_stranger(step) && !is_stranger(*from));
  });
  return steps;
}

absl::Status CheckpointDirectory::Save(std::int64_t step, const Value& value,
                                       const std::string& job, std::optional<std::int64_t> best) {
  const absl::Status written = WriteTorchFile(value, FilePathOf(step), Folder::kOfCheckpoints);
  if (!written.ok()) return written;
  RemoveShards(ShardsPathOf(step));
  return Enter(step, job, best);
}

absl::Status CheckpointDirectory::PrepareShards(std::int64_t step) const {
  const std::string folder = ShardsPathOf(step);
  std::error_code error;
  fs::create_directory(folder, error);
  if (!error) fs::remove(fs::path(folder) / kShardIndexName, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("make the directory ", folder, ": ", error.message()));
}

absl::Status CheckpointDirectory::SaveIndex(std::int64_t step, const ShardIndex& index,
                                            const std::string& job,
                                            std::optional<std::int64_t> best) {
  const std::string folder = ShardsPathOf(step);
  const absl::Status written = WriteShardIndex(folder, index);
  if (!written.ok()) return written;
  std::error_code ignored;
  fs::remove(FilePathOf(step), ignored);
  RemoveOtherShards(folder, static_cast<int>(index.files.size()));
  return Enter(step, job, best);
}

absl::Status CheckpointDirectory::MarkBest(std::int64_t step) const {
  const absl::Status written = WriteBest(step);
  const std::optional<Latest> latest = ReadLatest();
  if (written.ok() && latest && latest->step) RemoveOld(*latest->step, latest->strangers);
  return written;
}

absl::StatusOr<std::optional<CheckpointDirectory::Found>> CheckpointDirectory::FindNewest() const {
  std::vector<std::int64_t> steps = Steps();
  if (steps.empty()) return std::nullopt;
  if (const std::optional<Latest> latest = ReadLatest(); latest && latest->step) {
    // If that file is gone, this says so, too.
    steps.erase(std::lower_bound(steps.begin(), steps.end(), *latest->step), steps.end());
    steps = Without(latest->strangers, steps);
    steps.push_back(*latest->step);
  }
  Found found;
  found.warnings = UnfinishedAfter(steps.back());
  std::string problem;  // of the newest
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const absl::Status whole = CheckStep(*step);
    if (whole.ok()) {
      found.step = *step;
      found.path = PathOf(*step);
      return found;
    }
    if (!absl::IsInvalidArgument(whole)) return whole;
    if (problem.empty()) problem = std::string(whole.message());
    found.warnings.push_back(
        absl::StrCat("the checkpoint of step ", *step, " is skipped: ", whole.message()));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "load a checkpoint from ", path_, ": ",
      steps.size() == 1 ? "the only checkpoint is damaged"
                        : absl::StrCat("all ", steps.size(), " checkpoints are damaged"),
      steps.size() == 1 ? ": " : "; the newest: ", problem));
}

absl::Status CheckpointDirectory::CheckStep(std::int64_t step) const {
  const std::string path = PathOf(step);
  std::error_code ignored;
  if (fs::exists(path, ignored) || !fs::is_directory(ShardsPathOf(step), ignored)) {
    return CheckCheckpoint(path);
  }
  return absl::InvalidArgumentError(EndedEarly(ShardsPathOf(step)));
}

std::vector<std::string> CheckpointDirectory::UnfinishedAfter(std::int64_t after) const {
  std::vector<std::string> sentences;
  for (const std::int64_t step : Unfinished()) {
    if (step <= after) continue;
    sentences.push_back(absl::StrCat("the checkpoint of step ", step,
                                     " is skipped: ", EndedEarly(ShardsPathOf(step))));
  }
  std::reverse(sentences.begin(), sentences.end());
  return sentences;
}

std::optional<std::int64_t> CheckpointDirectory::StepAt(const std::string& path) const {
  // Without the slash that a directory's name may end with.
  const fs::path place = fs::path(path).lexically_normal();
  const fs::path name = place.has_filename() ? place.filename() : place.parent_path().filename();
  const std::optional<std::int64_t> step = StepOf(name.string());
  std::error_code error;
  if (step && fs::equivalent(path, PathOf(*step), error) && !error) return step;
  return std::nullopt;
}

std::vector<std::int64_t> CheckpointDirectory::StepsWhere(bool finished) const {
  std::set<std::int64_t> steps;
  std::error_code ignored;
  for (fs::directory_iterator entry(path_, ignored), end; entry != end; entry.increment(ignored)) {
    const std::string name = entry->path().filename().string();
    const std::optional<std::int64_t> step = StepOf(name);
    if (!step) continue;
    const bool file = name == NameOf(*step);
    const bool folder = name == FolderName(*step) && entry->is_directory(ignored);
    if (!file && !folder) continue;
    if (finished == (file || HasShardIndex(entry->path().string()))) steps.insert(*step);
  }
  return {steps.begin(), steps.end()};
}

std::string CheckpointDirectory::FilePathOf(std::int64_t step) const {
  return (fs::path(path_) / NameOf(step)).string();
}

std::string CheckpointDirectory::ShardsPathOf(std::int64_t step) const {
  return (fs::path(path_) / FolderName(step)).string();
}

std::string CheckpointDirectory::PathOf(std::int64_t step) const {
  std::string folder = ShardsPathOf(step);
  std::error_code ignored;
  return HasShardIndex(folder) ? folder : FilePathOf(step);
}

std::string CheckpointDirectory::StoredName(std::int64_t step) const {
  return fs::path(PathOf(step)).filename().string();
}

absl::StatusOr<std::string> CheckpointDirectory::LeaveSign() const {
  const std::string sign = absl::StrCat(kSign, base::RandomName(16));
  const std::string path = (fs::path(path_) / sign).string();
  const base::UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file.valid()) {
    return base::SystemFailure(absl::StatusCode::kInvalidArgument, "write", path);
  }
  return sign;
}

bool CheckpointDirectory::HasSign(const std::string& sign) const {
  std::error_code ignored;
  return fs::exists(fs::path(path_) / sign, ignored);
}

void CheckpointDirectory::RemoveSign(const std::string& sign) const {
  std::error_code ignored;
  fs::remove(fs::path(path_) / sign, ignored);
}

std::optional<std::int64_t> CheckpointDirectory::ReadBest() const {
  std::ifstream file(fs::path(path_) / kBest);
  std::string name;
  if (!std::getline(file, name)) return std::nullopt;
  return StepOf(name);
}

absl::Status CheckpointDirectory::WriteBest(std::int64_t step) const {
  std::error_code ignored;
  const Latest latest = ReadLatest().value_or(Latest());
  if (ReadBest() == step || !fs::exists(PathOf(step), ignored) || IsIn(latest.strangers, step)) {
    return absl::OkStatus();
  }
  return WriteDurably((fs::path(path_) / kBest).string(), StoredName(step) + "\n",
                      Folder::kOfCheckpoints);
}

absl::Status CheckpointDirectory::Enter(std::int64_t step, const std::string& job,
                                        std::optional<std::int64_t> best) const {
  const std::vector<std::int64_t> strangers = StrangersBeside(step);
  absl::Status status = WriteLatest({step, job, strangers});
  if (status.ok() && best) status = WriteBest(*best);
  if (status.ok()) RemoveOld(step, strangers);
  return status;
}

std::vector<std::int64_t> CheckpointDirectory::StrangersBeside(std::int64_t step) const {
  const std::optional<Latest> latest = ReadLatest();
  if (!latest || latest->strangers.empty()) return {};
  std::vector<std::int64_t> there;
  const std::vector<std::int64_t> steps = Steps();
  std::set_intersection(latest->strangers.begin(), latest->strangers.end(), steps.begin(),
                        steps.end(), std::back_inserter(there));
  return Without({step}, there);
}

void CheckpointDirectory::RemoveOld(std::int64_t newest,
                                    const std::vector<std::int64_t>& strangers) const {
  std::error_code ignored;
  std::vector<std::int64_t> steps = Without(strangers, Steps());
  steps.erase(std::upper_bound(steps.begin(), steps.end(), newest), steps.end());
  const std::optional<std::int64_t> best = ReadBest();
  for (std::size_t i = 0; i + static_cast<std::size_t>(keep_) < steps.size(); ++i) {
    if (steps[i] == best) continue;
    fs::remove(FilePathOf(steps[i]), ignored);
    RemoveShards(ShardsPathOf(steps[i]));
  }
  RemoveHalves();
}

void CheckpointDirectory::RemoveHalves() const {
  for (const std::int64_t step : Unfinished()) RemoveShards(ShardsPathOf(step));
  std::error_code ignored;
  for (fs::directory_iterator entry(path_, ignored), end; entry != end; entry.increment(ignored)) {
    const fs::path& path = entry->path();
    const bool half = path.extension() == ".tmp" && path.stem().extension() == kEnd &&
                      StepOf(path.stem().string()) &&
                      fs::is_regular_file(entry->symlink_status(ignored));
    if (half) fs::remove(path, ignored);
  }
}

void CheckpointDirectory::RemoveRemains() const {
  RemoveHalves();
  std::error_code ignored;
  for (fs::directory_iterator entry(path_, ignored), end; entry != end; entry.increment(ignored)) {
    if (entry->path().filename().string().starts_with(kSign)) fs::remove(entry->path(), ignored);
  }
}

}  // namespace muster::trainer
