#include "launcher/run/progress_book.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace muster::launcher {
namespace {

// The rendezvous shows no more of a node (rendezvous/core/values/limits.h).
constexpr int kMostRanks = 256;

template <typename Value>
void Append(Value value, std::size_t most, std::deque<Value>& values) {
  values.push_back(std::move(value));
  if (values.size() > most) values.pop_front();
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

void ProgressBook::Begin(rendezvous::RoundId round, int first_rank, int nproc) {
  round_ = round;
  first_rank_ = first_rank;
  Clear();
  ranks_.assign(static_cast<std::size_t>(std::min(nproc, kMostRanks)), {});
}

void ProgressBook::Clear() {
  ranks_.clear();
  troubles_.clear();
  had_troubles_ = troubles_are_news_ = false;
}

bool ProgressBook::SetTrouble(int rank, rendezvous::TroubleKind kind, const std::string& what,
                              rendezvous::TimePoint now) {
  const std::int64_t at = std::int64_t{rank} - first_rank_;
  if (at < 0 || at >= static_cast<std::int64_t>(ranks_.size())) return false;
  if (!troubles_.try_emplace({static_cast<int>(at), kind}, Trouble{what, now}).second) return false;
  had_troubles_ = troubles_are_news_ = true;
  return true;
}

bool ProgressBook::EndTrouble(int rank, rendezvous::TroubleKind kind) {
  if (troubles_.erase({rank - first_rank_, kind}) == 0) return false;
  troubles_are_news_ = true;
  return true;
}

bool ProgressBook::OnBeat(const worker::Beat& beat, rendezvous::TimePoint now) {
  const std::int64_t at = std::int64_t{beat.rank} - first_rank_;
  if (at < 0 || at >= static_cast<std::int64_t>(ranks_.size())) return false;
  Rank& rank = ranks_[static_cast<std::size_t>(at)];
  if (beat.step && rank.step && *beat.step > *rank.step) {
    const std::chrono::duration<double> since_then = now - *rank.last_beat;
    Append(since_then.count() / static_cast<double>(*beat.step - *rank.step), kSteps,
           rank.intervals);
  }
  rank.is_news = true;
  rank.last_beat = now;
  if (beat.step) rank.step = beat.step;
  if (beat.loss) rank.loss = beat.loss;
  if (beat.samples_per_second) rank.samples_per_second = beat.samples_per_second;
  if (!beat.phases.empty()) {
    Append(beat.phases, kSteps, rank.phases);
    ++rank.timed_steps;
  }
  return true;
}

rendezvous::Progress ProgressBook::Take(bool all, rendezvous::TimePoint now) {
  rendezvous::Progress progress{.round = round_};
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    const bool is_news = std::exchange(rank.is_news, false);
    if (is_news || (all && rank.last_beat)) {
      progress.ranks.push_back(Tell(rank, static_cast<int>(i), now));
    }
  }
  const bool are_news = std::exchange(troubles_are_news_, false);
  if (!are_news && !(all && had_troubles_)) return progress;
  progress.troubles.emplace();
  for (const auto& [of, trouble] : troubles_) {
    progress.troubles->push_back({.local_rank = of.first,
                                  .kind = of.second,
                                  .what = trouble.what,
                                  .ago = now - trouble.since});
  }
  return progress;
}

rendezvous::RankProgress ProgressBook::Tell(const Rank& rank, int local_rank,
                                            rendezvous::TimePoint now) {
  rendezvous::RankProgress told{.local_rank = local_rank,
                                .step = rank.step,
                                .ago = now - *rank.last_beat,
                                .loss = rank.loss,
                                .samples_per_second = rank.samples_per_second,
                                .timed_steps = rank.timed_steps};
  if (!rank.intervals.empty()) {
    told.step_seconds = Median({rank.intervals.begin(), rank.intervals.end()});
  }
  if (rank.phases.empty()) return told;
  for (const worker::BeatPhase& phase : rank.phases.back()) {
    std::vector<double> times;
    for (const std::vector<worker::BeatPhase>& step : rank.phases) {
      for (const worker::BeatPhase& one : step) {
        if (one.name == phase.name) times.push_back(one.seconds);
      }
    }
    told.phases.push_back({phase.name, Median(std::move(times)), worker::IsWaitPhase(phase.name)});
  }
  return told;
}

}  // namespace muster::launcher
