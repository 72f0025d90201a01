#include "trainer/app/training/finiteness.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>

#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "trainer/optim/finite.h"

namespace muster::trainer {
namespace {

// A rank's word: that its loss is not finite though its parameters are. Otherwise the name of a
// parameter, which is never this.
constexpr char kLossAlone[] = "?";
constexpr std::size_t kMostBytesOfWord = 200;

// Which of `ranks` ranks have said something: "", " on rank 1", " on ranks 1 and 3".
std::string OnRanks(const std::vector<int>& speaking, std::size_t ranks) {
  if (speaking.size() == ranks) return "";
  if (speaking.size() == 1) return absl::StrCat(" on rank ", speaking[0]);
  const std::vector<int> but_last(speaking.begin(), speaking.end() - 1);
  return absl::StrCat(" on ranks ", absl::StrJoin(but_last, ", "), " and ", speaking.back());
}

absl::Status Stopped(const Session& s, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("training stopped in epoch ", s.state.epoch + 1, ": ", why,
                   "; lower --lr, bound gradients with --clip",
                   s.options.on_nonfinite == OnNonFinite::kStop
                       ? ", or leave such steps out with --on-nonfinite skip"
                       : ""));
}

// A parameter that is not finite, and where.
struct Broken {
  std::string name;
  std::string where;  // OnRanks
};

std::optional<Broken> FindBroken(const std::vector<std::string>& words) {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < words.size(); ++rank) {
    if (!words[rank].empty() && words[rank] != kLossAlone) ranks.push_back(static_cast<int>(rank));
  }
  if (ranks.empty()) return std::nullopt;
  return Broken{words[static_cast<std::size_t>(ranks[0])], OnRanks(ranks, words.size())};
}

absl::Status BrokenBy(const Session& s, std::int64_t step, const Broken& broken) {
  if (step == s.resumed_step) {
    return Stopped(s, absl::StrCat(broken.name, " was NaN or infinite", broken.where,
                                   " before the first step"));
  }
  return Stopped(
      s, absl::StrCat("step ", step, " made ", broken.name, " NaN or infinite", broken.where));
}

}  // namespace

StepGuard::StepGuard(const Session& session) : s_(session) {
  for (const NamedTensor& buffer : s_.model->Buffers()) {
    buffers_.push_back(buffer.tensor);
    copies_.push_back(at::empty_like(buffer.tensor));
  }
}

void StepGuard::BeforeStep() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < buffers_.size(); ++i) copies_[i].copy_(buffers_[i]);
}

bool StepGuard::Allows(double gradient_norm) {
  bool finite = true;
  if (s_.options.clip_norm > 0) {
    finite = std::isfinite(gradient_norm);
  } else {
    std::vector<at::Tensor> gradients;
    for (const NamedTensor& parameter : s_.parameters) gradients.push_back(parameter.tensor.grad());
    finite = AllFinite(gradients);
  }
  if (finite) return true;
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < buffers_.size(); ++i) buffers_[i].copy_(copies_[i]);
  return false;
}

std::string WordOnLoss(double loss, const std::vector<NamedTensor>& parameters) {
  if (std::isfinite(loss)) return "";
  const std::string broken = FirstNotFinite(parameters);
  return broken.empty() ? kLossAlone : broken;
}

absl::Status NonFiniteLoss(const Session& s, std::int64_t step, const std::string& mine) {
  const std::vector<std::string> words = s.group.Gather(mine, kMostBytesOfWord);
  // A loss comes of parameters: those were broken by the step before.
  if (const auto broken = FindBroken(words)) return BrokenBy(s, step - 1, *broken);
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < words.size(); ++rank) {
    if (!words[rank].empty()) ranks.push_back(static_cast<int>(rank));
  }
  // No rank's own is, and yet their sum: losses near the largest number.
  if (ranks.empty()) ranks.resize(words.size());
  return Stopped(s, absl::StrCat("the loss of step ", step, " is NaN or infinite",
                                 OnRanks(ranks, words.size())));
}

absl::StatusOr<bool> FitToKeep(const Session& s) {
  const bool ignore = s.options.on_nonfinite == OnNonFinite::kIgnore;
  if (ignore && s.options.checkpoint.directory.empty()) return true;
  const std::string mine = FirstNotFinite(s.model->StateDict());
  if (s.group.Sum({mine.empty() ? 0.0 : 1.0})[0] == 0) return true;
  const Broken broken = FindBroken(s.group.Gather(mine, kMostBytesOfWord)).value();
  if (!ignore) return BrokenBy(s, s.state.step, broken);
  if (s.leads()) {
    s.progress.Say(absl::StrCat("no checkpoint is written after step ", s.state.step, ": ",
                                broken.name, " is NaN or infinite", broken.where));
  }
  return false;
}

}  // namespace muster::trainer
