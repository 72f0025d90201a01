#include "trainer/app/training/saving.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "trainer/app/training/broadcast.h"
#include "trainer/app/training/snapshot.h"
#include "trainer/optim/schedule.h"

namespace muster::trainer {
namespace {

constexpr std::size_t kMostShardFacts = 64;

bool InShards(const Session& s) {
  return s.options.checkpoint.format == CheckpointFormat::kShards;
}

// Whether this rank writes a shard of the checkpoint of `step`. A team does not that has resumed
// from it: it would take what may be the only copy apart, to write the same again.
bool WritesShard(const Session& s, std::int64_t step) {
  return s.writer != nullptr && s.kept_step != step;
}

// Whether it writes the index as well.
bool WritesIndex(const Session& s, std::int64_t step) {
  return WritesShard(s, step) && s.team[0] == s.env.rank;
}

Share ShareOf(const Session& s) {
  const auto mine = std::find(s.team.begin(), s.team.end(), s.env.rank);
  return {static_cast<int>(mine - s.team.begin()), static_cast<int>(s.team.size())};
}

absl::StatusOr<std::string> FactsText(const absl::StatusOr<FileFacts>& facts) {
  if (!facts.ok()) return facts.status();
  return absl::StrCat(facts->bytes, " ", facts->crc32);
}

absl::StatusOr<FileFacts> ReadFactsText(const std::string& text) {
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  FileFacts facts;
  if (words.size() == 2 && absl::SimpleAtoi(words[0], &facts.bytes) &&
      absl::SimpleAtoi(words[1], &facts.crc32)) {
    return facts;
  }
  return absl::InternalError("checkpoint: a rank does not say what it has written");
}

// Gives all ranks rank 0's buffers if any other rank saves them: all have the same parameters, but
// each has its own statistics of batch normalization. A run that resumes has rank 0's, too.
void ShareBuffers(Session& s) {
  std::vector<at::Tensor> buffers;
  for (const NamedTensor& buffer : s.model->Buffers()) buffers.push_back(buffer.tensor);
  const bool others_save = s.owners.back() > 0 || (InShards(s) && s.group.size() > 1);
  if (buffers.empty() || !others_save) return;
  const at::NoGradGuard no_grad;
  s.group.Broadcast(buffers, /*root=*/0, Use::kOther);
}

}  // namespace

absl::Status SaveCheckpoint(Session& s) {
  if (s.owners.empty() || s.saved_step == s.state.step) return absl::OkStatus();
  const absl::Status before = FinishSaving(s);
  if (!before.ok()) return before;
  if (InShards(s)) {
    const absl::Status prepared = FirstFailure(
        WritesIndex(s, s.state.step) ? s.writer->PrepareShards(s.state.step) : absl::OkStatus(),
        s.group);
    if (!prepared.ok()) return prepared;
  }
  ShareBuffers(s);
  s.saved_step = s.state.step;
  s.shards_open = InShards(s);
  s.state.gradient_order = s.strategy->GradientOrder();
  // Logs first: they may say more than the checkpoint knows, and never less.
  const absl::Status logged = s.leads() ? s.reporter->Flush() : absl::OkStatus();
  if (!logged.ok() || s.writer == nullptr) return logged;
  const double lr = LearningRateAt(s.options.schedule, s.state.step);
  const auto best =
      s.options.checkpoint.keep_best ? std::optional(s.state.best.step) : std::nullopt;
  const Value snapshot =
      TakeSnapshot({*s.model, *s.optimizer, s.state, s.ema.get()}, s.options, lr);
  if (!InShards(s)) {
    s.writer->Start(s.state.step, snapshot, best);
  } else if (WritesShard(s, s.state.step)) {
    s.writer->StartShard(s.state.step, snapshot, ShareOf(s), best);
  }
  s.beats.Send(s.state.step);
  return absl::OkStatus();
}

absl::Status IndexShards(Session& s) {
  if (!std::exchange(s.shards_open, false)) return absl::OkStatus();
  const absl::StatusOr<std::vector<std::string>> texts =
      FromAll(s.writer ? FactsText(s.writer->shard()) : std::string(), kMostShardFacts, s.group);
  if (!texts.ok()) return texts.status();
  if (!WritesIndex(s, s.saved_step)) return absl::OkStatus();
  std::vector<FileFacts> files;
  for (const int rank : s.team) {
    const absl::StatusOr<FileFacts> facts = ReadFactsText((*texts)[static_cast<std::size_t>(rank)]);
    if (!facts.ok()) return facts.status();
    files.push_back(*facts);
  }
  s.writer->StartIndex(files);
  return absl::OkStatus();
}

absl::Status FinishSaving(Session& s) {
  if (s.owners.empty()) return absl::OkStatus();
  const auto written = [&s](std::chrono::milliseconds most) {
    return s.writer == nullptr || s.writer->WaitFor(most);
  };
  AwaitAll(s, written);
  if (s.shards_open) {
    const absl::Status indexed = IndexShards(s);
    if (!indexed.ok()) return indexed;
    AwaitAll(s, written);
  }
  return FirstFailure(s.writer ? s.writer->status() : absl::OkStatus(), s.group);
}

void AwaitAll(Session& s, const std::function<bool(std::chrono::milliseconds)>& done) {
  constexpr std::chrono::milliseconds kBetweenBeats(250);
  while (s.group.Sum({done(kBetweenBeats) ? 0.0 : 1.0})[0] > 0) s.beats.Send(s.state.step);
}

}  // namespace muster::trainer
