// What the workers of a node tell of their steps, until the rendezvous hears of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/core/values/progress.h"
#include "rendezvous/core/values/types.h"
#include "worker/hang/hang_watch.h"

namespace muster::launcher {

// Beats come with each step, however short; the rendezvous gets one line a rank about once in a
// second. Times in it are medians of the last steps, so that one slow step does not show.
//
// Deterministic; not thread-safe. `now` never goes back.
class ProgressBook {
 public:
  // A round's workers, with ranks from `first_rank` on, are about to start. Of the round before
  // nothing is known any more.
  void Begin(rendezvous::RoundId round, int first_rank, int nproc);
  // The workers are gone, and nobody asks how far they had come.
  void Clear();

  // False: it is of no rank of ours, and nothing has changed.
  bool OnBeat(const worker::Beat& beat, rendezvous::TimePoint now);

  // Something is wrong with a rank, a phrase that follows "rank 3", until it is withdrawn or the
  // round is over. False: it is of no rank of ours, or is known already, and nothing has changed.
  bool SetTrouble(int rank, rendezvous::TroubleKind kind, const std::string& what,
                  rendezvous::TimePoint now);
  // It is over. False: there was none.
  bool EndTrouble(int rank, rendezvous::TroubleKind kind);

  // Of the ranks that have beaten since they were told last; with `all`, of those that have beaten
  // at all. With it what is wrong with ranks, if that has changed; with `all`, if anything ever
  // was.
  rendezvous::Progress Take(bool all, rendezvous::TimePoint now);

 private:
  // What medians are made of.
  static constexpr std::size_t kSteps = 9;
  struct Rank {
    bool is_news = false;
    std::optional<rendezvous::TimePoint> last_beat;  // nullopt: none in this round
    std::optional<std::int64_t> step;
    std::optional<double> loss;
    std::optional<double> samples_per_second;
    std::deque<double> intervals;                       // from step to step, in seconds
    std::deque<std::vector<worker::BeatPhase>> phases;  // of steps for which they were told
    std::int64_t timed_steps = 0;
  };

  static rendezvous::RankProgress Tell(const Rank& rank, int local_rank, rendezvous::TimePoint now);

  rendezvous::RoundId round_;
  int first_rank_ = 0;
  std::vector<Rank> ranks_;
  struct Trouble {
    std::string what;
    rendezvous::TimePoint since;
  };
  std::map<std::pair<int, rendezvous::TroubleKind>, Trouble> troubles_;  // by local rank
  bool had_troubles_ = false;                                            // in this round
  bool troubles_are_news_ = false;
};

}  // namespace muster::launcher
