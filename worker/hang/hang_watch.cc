#include "worker/hang/hang_watch.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

#include "base/durations.h"
#include "base/text.h"

namespace muster::worker {
namespace {

// As in Coordinator::Tick.
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
  // Output older than the last sign was counted already.
  if (watched == nullptr || !options_.output_counts || at <= watched->last) return;
  OnSign(*watched, at);
}

void HangWatch::OnExited(int rank) {
  if (Watched* const watched = FindRunning(rank)) watched->exited = true;
}

void HangWatch::StartAfresh(Time now) {
  for (auto& [rank, watched] : ranks_) {
    if (!watched.told) watched.last = std::max(watched.last, now);
  }
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
    StartAfresh(now);
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
  return Told(std::move(found));
}

std::vector<Silence> HangWatch::AllSilent() const {
  std::vector<const Watched*> found;
  for (const auto& [rank, watched] : ranks_) {
    if (is_silent(rank)) found.push_back(&watched);
  }
  return Told(std::move(found));
}

std::vector<Silence> HangWatch::Told(std::vector<const Watched*> those) {
  std::stable_sort(those.begin(), those.end(), [](const Watched* one, const Watched* other) {
    return one->last < other->last;
  });
  std::vector<Silence> told;
  for (const Watched* watched : those) told.push_back(*watched->told);
  return told;
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

namespace {

// absl's parser also accepts signs and spaces.
template <typename Number>
bool ParseNumber(absl::string_view text, Number* number) {
  return !text.empty() && absl::ascii_isdigit(static_cast<unsigned char>(text[0])) &&
         absl::SimpleAtoi(text, number);
}

// Accepts "nan" and "inf", as programs print them, but not the spaces that absl's parser allows.
std::optional<double> ParseReal(absl::string_view text) {
  double number = 0;
  const bool has_space = std::any_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isspace(static_cast<unsigned char>(c));
  });
  if (has_space || !absl::SimpleAtod(text, &number)) return std::nullopt;
  return number;
}

bool IsPhaseName(absl::string_view name) {
  return !name.empty() && name.size() <= kMaxPhaseName &&
         absl::ascii_islower(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return absl::ascii_islower(byte) || absl::ascii_isdigit(byte) || c == '_';
         });
}

bool AddPhase(absl::string_view name, double seconds, std::vector<BeatPhase>& phases) {
  if (!IsPhaseName(name) || !(seconds >= 0 && seconds <= kMaxPhaseSeconds)) return false;
  const bool is_there = std::any_of(phases.begin(), phases.end(), [&](const BeatPhase& phase) {
    return absl::string_view(phase.name) == name;
  });
  if (is_there || phases.size() == kMaxPhases) return false;
  phases.push_back({std::string(name), seconds});
  return true;
}

// False if the word cannot be understood.
bool TakeFact(absl::string_view word, Beat& beat) {
  const std::size_t equals = word.find('=');
  if (equals == absl::string_view::npos) return false;
  const absl::string_view name = word.substr(0, equals);
  const std::optional<double> value = ParseReal(word.substr(equals + 1));
  if (!value) return false;
  if (name == "loss") {
    beat.loss = value;
    return true;
  }
  if (name != "samples_per_second") return AddPhase(name, *value, beat.phases);
  if (!std::isfinite(*value) || *value < 0) return false;
  beat.samples_per_second = value;
  return true;
}

}  // namespace

bool IsWaitPhase(std::string_view name) {
  return absl::StartsWith(absl::string_view(name.data(), name.size()), "wait");
}

std::optional<Beat> ParseBeat(std::string_view text) {
  if (text.size() > kMaxBeat) return std::nullopt;
  const absl::string_view line =
      absl::StripTrailingAsciiWhitespace(absl::string_view(text.data(), text.size()));
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  Beat beat;
  if (words.size() < 2 || words[0] != "beat") return std::nullopt;
  if (!ParseNumber(words[1], &beat.rank)) return std::nullopt;
  std::size_t next = 2;
  if (words.size() > 2 && !absl::StrContains(words[2], '=')) {
    if (!ParseNumber(words[2], &beat.step.emplace())) return std::nullopt;
    ++next;
  }
  for (; next < words.size(); ++next) {
    if (!TakeFact(words[next], beat) && beat.ignored.empty()) {
      beat.ignored = std::string(words[next]);
    }
  }
  return beat;
}

}  // namespace muster::worker
