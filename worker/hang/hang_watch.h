// Which workers give no sign of life any more. Decides only: time comes in, and nothing is read or
// sent.
//
// A sign of life is a beat and, where output counts, output. The silence of a rank is measured from
// its last sign; before its first one it has a period of its own, as what a worker does before its
// first step (imports, compilation, loading a checkpoint) takes longer than a step.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::worker {

struct HangWatchOptions {
  // The longest silence after a sign of life. Must be above zero.
  std::chrono::milliseconds timeout{};
  // The longest silence from the start to the first sign; 0: for ever, that is, a rank that never
  // gives one is not watched.
  std::chrono::milliseconds first_beat_timeout{0};
  // Output is a sign of life, too.
  bool output_counts = false;
};

// A rank that was silent for too long.
struct Silence {
  int rank = 0;
  std::chrono::milliseconds silent{};
  // It has given no sign of life since it was started.
  bool before_first_sign = false;
  // The step that its last beat named.
  std::optional<std::int64_t> last_step;

  bool operator==(const Silence&) const = default;
};

// A phrase that follows "rank 3": "gave no sign of life for 60.0 s (last step 1200)".
std::string Describe(const Silence& silence);

// The workers of one node in one round. `now` never goes back.
class HangWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit HangWatch(HangWatchOptions options);

  // Workers with these ranks begin at `now`; what was known of others is forgotten.
  void Start(const std::vector<int>& ranks, Time now);

  // Signs of life. They count for nothing when the rank is none of ours or has exited; OnOutput,
  // too, when output does not count. `at` may lie before the last sign: then that one stands.
  void OnBeat(int rank, std::optional<std::int64_t> step, Time at);
  void OnOutput(int rank, Time at);

  void OnExited(int rank);

  // When Overdue is to be called next; nothing while nobody can become late. It moves with each
  // sign of life, mostly to a later time: who waits for it may keep an old one, and ask again then.
  std::optional<Time> NextDeadline() const;

  // Those whose time is over, by rank; each once for each silence. A call that comes more than 250
  // ms after NextDeadline did not wait for its turn, but this whole process stood still and was
  // deaf: then nobody is late, and everybody's time begins anew.
  std::vector<Silence> Overdue(Time now);

  // Those that were given to Start().
  std::vector<int> ranks() const;
  // The rank has beaten since Start().
  bool had_beat(int rank) const;

 private:
  // A rank is
  //  - starting: no sign of life yet, and first_beat_timeout runs, if there is one;
  //  - alive: had_sign, and timeout runs since `last`;
  //  - silent: told, and nothing runs until the next sign of life, which makes it alive;
  //  - exited: nothing is heard of it or runs any more.
  // Starting and alive ranks become silent when their time is over, and any of them may exit.
  struct Watched {
    // The last sign of life; the start, before the first.
    Time last;
    bool had_sign = false;
    bool told = false;
    bool exited = false;
    // Of the signs of life one at least was a beat, and the last one named this step.
    bool had_beat = false;
    std::optional<std::int64_t> step;
  };

  Watched* FindRunning(int rank);
  void OnSign(Watched& watched, Time at);
  // When it is late; nothing when it cannot become so, or was told already.
  std::optional<Time> DeadlineOf(const Watched& watched) const;

  const HangWatchOptions options_;
  std::map<int, Watched> ranks_;
};

}  // namespace muster::worker
