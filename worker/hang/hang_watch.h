// Decides which workers have stopped giving signs of life. It only decides: time comes in, and
// nothing is read or sent.
//
// A sign of life is a beat and, where output counts, output. A rank's silence is measured from its
// last sign. For the first sign there is a separate limit, as what a worker does before its first
// step (imports, compilation, loading a checkpoint) takes longer than a step.
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
  // Output is also a sign of life.
  bool output_counts = false;
};

// A rank that has been silent for too long.
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

  // Workers with these ranks begin at `now`; all others are forgotten.
  void Start(const std::vector<int>& ranks, Time now);

  // Signs of life. They are ignored if the rank is not one of ours or has exited; OnOutput also if
  // output does not count. `at` may be before the last sign: then it changes nothing.
  void OnBeat(int rank, std::optional<std::int64_t> step, Time at);
  void OnOutput(int rank, Time at);

  void OnExited(int rank);

  // When Overdue is to be called next; nullopt while no rank can become late. It moves with each
  // sign of life, usually to a later time: a caller may keep waiting for an old one, and then ask
  // again.
  std::optional<Time> NextDeadline() const;

  // The ranks whose time is over, in order of rank; each once per silence. If the call comes more
  // than 250 ms after NextDeadline, this whole process is taken to have stood still and been deaf:
  // then none is late, and every rank's time starts afresh.
  std::vector<Silence> Overdue(Time now);

  // Those of which one is to blame for the hang, as Overdue has told them: the rank that was late
  // first, and all that were late at most a tenth of the timeout after it, as ranks that wait for
  // one another fall silent at about the same time, in whatever order. The one that fell silent
  // first comes first. Who has given a sign of life again, or has exited, is not among them; empty
  // when nobody is left. nullopt as long as another one may still become one of them: ask again
  // after NextDeadline.
  std::optional<std::vector<Silence>> Suspects() const;

  // The ranks that Overdue would tell a tenth of the timeout after `now`, if they stayed silent:
  // when a hang of several nodes ends the round, those that took part in it.
  std::vector<Silence> NearlyOverdue(Time now) const;

  // Overdue has told the rank, which has given no sign of life since, and has not exited.
  bool is_silent(int rank) const;
  // The ranks that were given to Start().
  std::vector<int> ranks() const;
  // The rank has beaten since Start().
  bool had_beat(int rank) const;
  // When it gave its last sign of life, or was started; nullopt: it is not one of ours.
  std::optional<Time> last_sign(int rank) const;

 private:
  // A rank is
  //  - starting: no sign of life yet, and first_beat_timeout runs, if there is one;
  //  - alive: had_sign, and timeout runs since `last`;
  //  - silent: reported, and no time runs until the next sign of life, which makes it alive;
  //  - exited: no sign counts and no time runs any more.
  // Starting and alive ranks become silent when their time is over, and any of them may exit.
  struct Watched {
    // The last sign of life; the start, before the first.
    Time last;
    bool had_sign = false;
    std::optional<Silence> told{};  // by Overdue, since the last sign of life
    bool exited = false;
    // At least one sign of life was a beat, and the last beat named this step.
    bool had_beat = false;
    std::optional<std::int64_t> step;
  };

  Watched* FindRunning(int rank);
  void OnSign(Watched& watched, Time at);
  // How silent it is at `now`.
  Silence SilenceOf(int rank, const Watched& watched, Time now) const;
  // When it becomes late, or did; nullopt when it cannot.
  std::optional<Time> LimitOf(const Watched& watched) const;
  // When it becomes late; nullopt when it cannot, or was already reported.
  std::optional<Time> DeadlineOf(const Watched& watched) const;

  const HangWatchOptions options_;
  std::map<int, Watched> ranks_;
};

}  // namespace muster::worker
