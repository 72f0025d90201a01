#include "trainer/app/training/resume.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include <ATen/core/Tensor.h>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

#include "base/text.h"

#include "trainer/app/training/agreement.h"
#include "trainer/io/checkpoint_directory.h"
#include "trainer/io/checkpoint_file.h"
#include "trainer/io/formats/shard_index.h"
#include "trainer/io/safetensors.h"
#include "trainer/io/torch_file.h"
#include "trainer/quant/qat_options.h"

namespace muster::trainer {
namespace {

// The name of this job, as far as the directories have it.
std::string NameOfJob(const std::vector<DirectoryReport>& reports, const ResumeRequest& request) {
  std::string job;
  if (!request.restarted) return job;
  for (const DirectoryReport& report : reports) {
    if (IsOfRun(report.job, request.run_id)) job = std::max(job, report.job);
  }
  return job;
}

// The job that saved a directory's newest checkpoint; one that used the directory without saving
// does not count.
std::string MakerOf(const DirectoryReport& report) {
  return report.latest ? report.job : std::string();
}

bool Counts(const DirectoryReport& report, const ResumeRequest& request, const std::string& job) {
  if (!report.step) return false;
  if (job.empty()) return request.automatic && (!request.restarted || report.job.empty());
  return report.latest && report.job == job && (request.automatic || report.step == report.latest);
}

}  // namespace

ResumeChoice ChooseCheckpoint(const std::vector<DirectoryReport>& reports,
                              const ResumeRequest& request) {
  ResumeChoice choice{.job = NameOfJob(reports, request)};
  const DirectoryReport* best = nullptr;
  const auto age = [](const DirectoryReport& report) {
    return std::pair(MakerOf(report), *report.step);
  };
  for (const DirectoryReport& report : reports) {
    if (!Counts(report, request, choice.job)) continue;
    if (best == nullptr || age(*best) < age(report)) best = &report;
  }
  if (best == nullptr) return choice;
  choice.rank = best->rank;
  choice.step = *best->step;
  choice.maker = MakerOf(*best);
  for (const DirectoryReport& report : reports) {
    if (!Counts(report, request, choice.job)) continue;
    if (age(report) == age(*best)) choice.holders.push_back(report.rank);
    if (*report.step > choice.step) choice.passed_over.push_back(report.rank);
  }
  return choice;
}

namespace {

// The run id as a single word.
std::string Word(std::string_view run_id) {
  std::string word(run_id.substr(0, 96));
  std::replace_if(
      word.begin(), word.end(), [](unsigned char c) { return !absl::ascii_isgraph(c); }, '_');
  return word;
}

}  // namespace

std::string MakeJobName(std::chrono::system_clock::time_point now, std::string_view run_id) {
  const auto since = now.time_since_epoch();
  const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(since).count();
  return absl::StrFormat("%016d-%s %s", microseconds, base::RandomName(8), Word(run_id));
}

bool IsOfRun(std::string_view job, std::string_view run_id) {
  const std::size_t space = job.find(' ');
  return space != std::string_view::npos && job.substr(space + 1) == Word(run_id);
}

namespace {

constexpr char kAuto[] = "auto";  // values of --resume
constexpr char kNone[] = "none";
constexpr std::size_t kMostReport = 256;      // bytes
constexpr std::size_t kMostSentences = 4000;  // bytes, over all of a rank's warnings

// Prefixes a status's sentence.
absl::Status Prefixed(const std::string& fact, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(fact, status.message()));
}

// A rank's report on its directory, with warnings for the user.
struct Survey {
  std::optional<DirectoryReport> report;  // nullopt: this rank is no owner, or reading failed
  absl::Status status;                    // of reading
  std::vector<std::string> warnings;
};

Survey LookInto(const CheckpointOwners& owners, int rank) {
  Survey survey;
  if (owners.team.empty() || owners.team[0] != rank) return survey;
  const CheckpointDirectory& directory = *owners.directory;
  auto found = directory.FindNewest();
  if (!found.ok()) {
    survey.status = Prefixed("resume: ", found.status());
    return survey;
  }
  survey.report = DirectoryReport{.rank = rank};
  if (const auto latest = directory.ReadLatest()) {
    survey.report->job = latest->job;
    survey.report->latest = latest->step;
  }
  if (found->has_value()) {
    survey.report->step = (*found)->step;
    survey.warnings = std::move((*found)->warnings);
  } else {
    survey.warnings = directory.UnfinishedAfter(-1);
  }
  return survey;
}

std::string StepText(const std::optional<std::int64_t>& step) {
  return step ? absl::StrCat(*step) : "-";
}

std::optional<std::int64_t> StepIn(const std::string& text) {
  std::int64_t step = 0;
  return absl::SimpleAtoi(text, &step) ? std::optional(step) : std::nullopt;
}

// The reports of all ranks, by rank. Adds all ranks' sentences to `warnings`, those of other ranks
// with their rank; returns an error if there is no report, but an error.
absl::StatusOr<std::vector<DirectoryReport>> GatherReports(const CheckpointOwners& owners,
                                                           Group& group,
                                                           std::vector<std::string>* warnings) {
  Survey mine = LookInto(owners, group.rank());
  if (!mine.status.ok()) mine.warnings = {std::string(mine.status.message())};
  const std::string text = mine.report
                               ? absl::StrCat(StepText(mine.report->latest), " ",
                                              StepText(mine.report->step), " ", mine.report->job)
                               : "";
  const std::vector<std::string> texts = group.Gather(text, kMostReport);
  const std::vector<std::string> sentences =
      group.Gather(absl::StrJoin(mine.warnings, "\n"), kMostSentences);

  std::vector<DirectoryReport> reports;
  for (int rank = 0; rank < group.size(); ++rank) {
    const auto place = static_cast<std::size_t>(rank);
    for (const absl::string_view sentence :
         absl::StrSplit(sentences[place], '\n', absl::SkipEmpty())) {
      warnings->push_back(
          absl::StrCat(rank == 0 ? "" : absl::StrCat("on rank ", rank, ": "), sentence));
    }
    if (texts[place].empty()) continue;
    const std::vector<std::string> words = absl::StrSplit(texts[place], absl::MaxSplits(' ', 2));
    if (words.size() < 3) continue;
    reports.push_back({rank, words[2], StepIn(words[0]), StepIn(words[1])});
  }
  // If another directory can be read, an unreadable one is only worth a warning.
  const bool any = std::any_of(reports.begin(), reports.end(),
                               [](const DirectoryReport& report) { return report.step; });
  const absl::Status failed = any ? absl::OkStatus() : FirstFailure(mine.status, group);
  if (!failed.ok()) return failed;
  return reports;
}

// The checkpoint to resume from, and the rank that has it.
struct Source {
  int rank = 0;
  std::string path;  // on that rank; empty: none
};

absl::StatusOr<Value> FetchFile(const Source& source, Group& group) {
  const absl::StatusOr<at::Tensor> bytes = FileFromRank(source.rank, source.path, group);
  if (!bytes.ok()) return bytes.status();
  absl::StatusOr<Value> value = ReadTorchBytes(*bytes);
  if (value.ok()) return value;
  return Prefixed(absl::StrCat("read ", source.path, ": "), value.status());
}

// The same for a directory of shards with this index.
absl::StatusOr<Value> FetchShards(const Source& source, const std::string& index_text,
                                  Group& group) {
  const absl::StatusOr<ShardIndex> index = ReadShardIndex(index_text);
  if (!index.ok()) {
    return Prefixed(absl::StrCat("read ", source.path, "/", kShardIndexName, ": "), index.status());
  }
  const int shards = static_cast<int>(index->files.size());
  std::vector<at::Tensor> files;
  for (int shard = 0; shard < shards; ++shard) {
    const std::string path = absl::StrCat(source.path, "/", ShardName(shard, shards));
    const absl::StatusOr<at::Tensor> bytes = FileFromRank(source.rank, path, group);
    if (!bytes.ok()) return bytes.status();
    files.push_back(*bytes);
  }
  return AssembleShards(source.path, *index, files);
}

absl::StatusOr<Value> Fetch(const Source& source, Group& group) {
  absl::StatusOr<std::string> index_text = std::string();
  std::error_code ignored;
  if (group.rank() == source.rank && std::filesystem::is_directory(source.path, ignored)) {
    index_text = ReadIndexText(source.path);
  }
  index_text = FromRank(source.rank, index_text, group);
  if (!index_text.ok()) return index_text.status();
  return index_text->empty() ? FetchFile(source, group) : FetchShards(source, *index_text, group);
}

// Chooses from the owners' directories, and fills in `point` except its checkpoint.
absl::StatusOr<Source> SearchDirectories(const CheckpointOptions& options, const Environment& env,
                                         const CheckpointOwners& owners, Group& group,
                                         ResumePoint* point) {
  const auto reports = GatherReports(owners, group, &point->warnings);
  if (!reports.ok()) return reports.status();
  const ResumeChoice choice =
      ChooseCheckpoint(*reports, {options.resume == kAuto, env.restarted(), env.run_id});
  point->job = choice.job;
  point->maker = choice.maker;
  point->searched = true;
  point->kept_everywhere = choice.rank && choice.holders.size() == owners.ranks.size();
  for (const int rank : choice.holders) {
    if (!owners.team.empty() && rank == owners.team[0]) point->kept_step = choice.step;
  }
  for (const int rank : choice.passed_over) {
    point->warnings.push_back(absl::StrCat("rank ", rank, " has a checkpoint of a later step in ",
                                           options.directory,
                                           ", which is not used: it is from an earlier job"));
  }
  if (choice.rank) {
    // By its owner: the directory may have another path there.
    const auto path =
        FromRank(*choice.rank,
                 owners.directory ? owners.directory->PathOf(choice.step) : std::string(), group);
    if (!path.ok()) return path.status();
    return Source{*choice.rank, *path};
  }
  if (env.restarted()) {
    point->warnings.push_back(
        absl::StrCat("this job was restarted, and no rank has a checkpoint of it in ",
                     options.directory, ": training begins again"));
  }
  return Source();
}

// The checkpoint named by --resume, as seen by rank 0.
absl::StatusOr<std::string> GivenPath(const std::string& given, Group& group,
                                      std::vector<std::string>* warnings) {
  using Text = absl::StatusOr<std::string>;
  absl::StatusOr<FoundCheckpoint> found = FoundCheckpoint();
  if (group.rank() == 0) found = FindCheckpoint(given);
  Text path = FromRankZero(found.ok() ? Text(found->path) : Text(found.status()), group);
  if (!path.ok()) return path;
  const Text sentences = FromRankZero(Text(absl::StrJoin(found->warnings, "\n")), group);
  if (!sentences.ok()) return sentences;
  for (const absl::string_view sentence : absl::StrSplit(*sentences, '\n', absl::SkipEmpty())) {
    warnings->emplace_back(sentence);
  }
  return path;
}

// The job that saved what is in this directory; empty: unknown.
std::string MakerOf(const CheckpointDirectory& directory) {
  const auto latest = directory.ReadLatest();
  return latest && latest->step ? latest->job : "";
}

}  // namespace

absl::StatusOr<ResumePoint> FindResumePoint(const CheckpointOptions& options,
                                            const Environment& env, const CheckpointOwners& owners,
                                            Group& group) {
  ResumePoint point;
  Source source;
  if (!owners.ranks.empty() && (options.resume == kAuto || env.restarted())) {
    const auto found = SearchDirectories(options, env, owners, group, &point);
    if (!found.ok()) return found.status();
    source = *found;
  }
  if (source.path.empty() && options.resume != kAuto && options.resume != kNone) {
    point.searched = false;
    const auto path = GivenPath(options.resume, group, &point.warnings);
    if (!path.ok()) return Prefixed("resume: ", path.status());
    source.path = *path;
    // If it is in the directory of rank 0, which reads it, it must not be written again: that would
    // replace it shard by shard. Other owners may have a different one of that name.
    if (owners.directory && owners.team[0] == 0) {
      point.kept_step = owners.directory->StepAt(source.path);
    }
    const bool keeps = point.kept_step && owners.team[0] == group.rank();
    const auto maker = FromRankZero(
        absl::StatusOr<std::string>(keeps ? MakerOf(*owners.directory) : std::string()), group);
    if (!maker.ok()) return maker.status();
    point.maker = *maker;
    const double keepers = group.Sum({keeps ? 1.0 : 0.0})[0];
    point.kept_everywhere = keepers == static_cast<double>(owners.ranks.size());
  }
  if (point.job.empty()) {
    const auto name =
        FromRankZero(MakeJobName(std::chrono::system_clock::now(), env.run_id), group);
    if (!name.ok()) return name.status();
    point.job = *name;
  }
  if (source.path.empty()) return point;
  absl::StatusOr<Value> snapshot = Fetch(source, group);
  if (!snapshot.ok()) return Prefixed("resume: ", snapshot.status());
  const std::string owner = source.rank == 0 ? "" : absl::StrCat(" of rank ", source.rank);
  point.checkpoint = Resumable{absl::StrCat(source.path, owner), *std::move(snapshot)};
  return point;
}

namespace {

// Those of `parameters` that `state` should contain, under its names: without --qat's observers if
// it has none. They then start from the beginning.
std::vector<NamedTensor> TargetsIn(const Value& state, std::vector<NamedTensor> parameters) {
  if (state.dict() == nullptr) return parameters;
  for (const auto& [key, value] : *state.dict()) {
    const auto* name = std::get_if<std::string>(&key);
    if (name != nullptr && IsOfFakeQuantize(*name)) return parameters;
  }
  const auto observed = [](const NamedTensor& one) { return IsOfFakeQuantize(one.name); };
  if (std::erase_if(parameters, observed) == 0) return parameters;
  for (NamedTensor& one : parameters) one.name = FloatName(one.name);
  return parameters;
}

}  // namespace

absl::StatusOr<std::string> InitFrom(const CheckpointOptions& options,
                                     const std::vector<NamedTensor>& parameters) {
  if (options.init_from.empty()) return std::string();
  const absl::StatusOr<FoundCheckpoint> found = FindCheckpoint(options.init_from);
  if (!found.ok()) return Prefixed("--init-from: ", found.status());
  const std::string attempt = absl::StrCat("take parameters from ", found->path, ": ");
  Value state;
  if (IsSafetensors(found->path)) {
    const absl::StatusOr<SafetensorsContents> contents = ReadSafetensors(found->path);
    if (!contents.ok()) return Prefixed("--init-from: ", contents.status());
    state = StateDictValue(contents->tensors);
  } else {
    const absl::StatusOr<Value> file = ReadCheckpoint(found->path);
    if (!file.ok()) return Prefixed("--init-from: ", file.status());
    const absl::StatusOr<const Value*> dict = FindStateDict(*file);
    if (!dict.ok()) return Prefixed(attempt, dict.status());
    state = **dict;
  }
  const auto report = LoadStateDict(state, TargetsIn(state, parameters), options.init);
  if (!report.ok()) return Prefixed(attempt, report.status());
  const std::string skipped =
      found->warnings.empty() ? "" : absl::StrCat("; ", absl::StrJoin(found->warnings, "; "));
  return absl::StrCat("parameters from ", found->path, ": ", report->Sentence(), skipped);
}

}  // namespace muster::trainer
