#include "worker/hang/hang_watch.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "base/earliest.h"
#include "base/phrases.h"

namespace muster::worker {
namespace {

// As Coordinator::Tick has it.
constexpr std::chrono::milliseconds kHalt(250);

}  // namespace

std::string Describe(const Silence& silence) {
  std::string text = absl::StrCat("gave no sign of life for ", base::Seconds(silence.silent));
  if (silence.before_first_sign) {
    text += " from its start on";
  } else if (silence.last_step.has_value()) {
    absl::StrAppend(&text, " (last step ", *silence.last_step, ")");
  }
  return text;
}

HangWatch::HangWatch(HangWatchOptions options) : options_(options) {
  if (options_.timeout <= options_.timeout.zero()) std::abort();
}

void HangWatch::Start(const std::vector<int>& ranks, Time now) {
  ranks_.clear();
  for (const int rank : ranks) ranks_[rank].last = now;
}

void HangWatch::OnBeat(int rank, std::optional<std::int64_t> step, Time at) {
  Watched* const watched = FindRunning(rank);
  if (watched == nullptr) return;
  watched->had_beat = true;
  if (step.has_value()) watched->step = step;
  OnSign(*watched, at);
}

void HangWatch::OnOutput(int rank, Time at) {
  Watched* const watched = FindRunning(rank);
  // Output of before the last sign is one that is known already.
  if (watched == nullptr || !options_.output_counts || at <= watched->last) return;
  OnSign(*watched, at);
}

void HangWatch::OnExited(int rank) {
  if (Watched* const watched = FindRunning(rank)) watched->exited = true;
}

std::optional<HangWatch::Time> HangWatch::NextDeadline() const {
  std::optional<Time> next;
  for (const auto& [rank, watched] : ranks_) {
    next = base::Earliest(next, DeadlineOf(watched));
  }
  return next;
}

std::vector<Silence> HangWatch::Overdue(Time now) {
  const std::optional<Time> due = NextDeadline();
  if (!due.has_value() || now < *due) return {};
  if (now - *due > kHalt) {
    for (auto& [rank, watched] : ranks_) {
      if (!watched.told) watched.last = std::max(watched.last, now);
    }
    return {};
  }
  std::vector<Silence> overdue;
  for (auto& [rank, watched] : ranks_) {
    const std::optional<Time> deadline = DeadlineOf(watched);
    if (!deadline.has_value() || now < *deadline) continue;
    watched.told = SilenceOf(rank, watched, now);
    overdue.push_back(*watched.told);
  }
  return overdue;
}

std::optional<std::vector<Silence>> HangWatch::Suspects() const {
  std::optional<Time> first;
  for (const auto& [rank, watched] : ranks_) {
    if (watched.told) first = base::Earliest(first, LimitOf(watched));
  }
  if (!first.has_value()) return std::vector<Silence>();
  std::vector<const Watched*> found;
  for (const auto& [rank, watched] : ranks_) {
    const std::optional<Time> limit = LimitOf(watched);
    if (!limit.has_value() || *limit > *first + options_.timeout / 10) continue;
    if (!watched.told) return std::nullopt;
    found.push_back(&watched);
  }
  std::stable_sort(found.begin(), found.end(), [](const Watched* one, const Watched* other) {
    return one->last < other->last;
  });
  std::vector<Silence> suspects;
  for (const Watched* watched : found) suspects.push_back(*watched->told);
  return suspects;
}

std::vector<Silence> HangWatch::NearlyOverdue(Time now) const {
  std::vector<Silence> nearly;
  for (const auto& [rank, watched] : ranks_) {
    const std::optional<Time> deadline = DeadlineOf(watched);
    if (!deadline.has_value() || *deadline > now + options_.timeout / 10) continue;
    nearly.push_back(SilenceOf(rank, watched, now));
  }
  return nearly;
}

Silence HangWatch::SilenceOf(int rank, const Watched& watched, Time now) const {
  return {.rank = rank,
          .silent = std::chrono::duration_cast<std::chrono::milliseconds>(now - watched.last),
          .before_first_sign = !watched.had_sign,
          .last_step = watched.step};
}

std::vector<int> HangWatch::ranks() const {
  std::vector<int> ranks;
  for (const auto& [rank, watched] : ranks_) ranks.push_back(rank);
  return ranks;
}

bool HangWatch::is_silent(int rank) const {
  const auto found = ranks_.find(rank);
  return found != ranks_.end() && found->second.told && !found->second.exited;
}

bool HangWatch::had_beat(int rank) const {
  const auto found = ranks_.find(rank);
  return found != ranks_.end() && found->second.had_beat;
}

std::optional<HangWatch::Time> HangWatch::last_sign(int rank) const {
  const auto found = ranks_.find(rank);
  return found == ranks_.end() ? std::nullopt : std::optional(found->second.last);
}

HangWatch::Watched* HangWatch::FindRunning(int rank) {
  const auto found = ranks_.find(rank);
  return found == ranks_.end() || found->second.exited ? nullptr : &found->second;
}

void HangWatch::OnSign(Watched& watched, Time at) {
  watched.last = std::max(watched.last, at);
  watched.had_sign = true;
  watched.told.reset();
}

std::optional<HangWatch::Time> HangWatch::DeadlineOf(const Watched& watched) const {
  return watched.told ? std::nullopt : LimitOf(watched);
}

std::optional<HangWatch::Time> HangWatch::LimitOf(const Watched& watched) const {
  if (watched.exited) return std::nullopt;
  if (watched.had_sign) return watched.last + options_.timeout;
  if (options_.first_beat_timeout <= options_.first_beat_timeout.zero()) return std::nullopt;
  return watched.last + options_.first_beat_timeout;
}

}  // namespace muster::worker
