// Decides which workers have stopped giving signs of life. A pure decision: time comes in, and
// nothing is read or sent.
//
// A sign of life is a beat or, where output counts, output. A rank's silence is measured from its
// last sign. The first sign has a limit of its own, as the work before the first step (imports,
// compilation, loading a checkpoint) takes longer than a step.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::worker {

struct HangWatchOptions {
  // The longest silence after a sign of life. Must be positive.
  std::chrono::milliseconds timeout{};
  // The longest silence from the start to the first sign; 0: no limit, so a rank that never gives a
  // sign is not watched.
  std::chrono::milliseconds first_beat_timeout{0};
  // Output counts as a sign of life.
  bool output_counts = false;
};

// A rank that has been silent for too long.
struct Silence {
  int rank = 0;
  std::chrono::milliseconds silent{};
  // It has given no sign of life since its start.
  bool before_first_sign = false;
  // The step in its last beat.
  std::optional<std::int64_t> last_step;

  bool operator==(const Silence&) const = default;
};

// A phrase that follows "rank 3": "gave no sign of life for 60.0 s (last step 1200)".
std::string Describe(const Silence& silence);

// The workers of one node in one round. `now` never decreases.
class HangWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit HangWatch(HangWatchOptions options);

  // Starts to watch workers with these ranks, and forgets all others.
  void Start(const std::vector<int>& ranks, Time now);

  // Signs of life. Ignored if the rank is unknown or has exited; OnOutput also if output does not
  // count. An `at` before the last sign changes nothing.
  void OnBeat(int rank, std::optional<std::int64_t> step, Time at);
  void OnOutput(int rank, Time at);

  void OnExited(int rank);

  // The workers stood still until now: restarts every rank's time, and none is late. Ranks reported
  // by Overdue remain silent.
  void StartAfresh(Time now);

  // When Overdue must be called next; nullopt while no rank can become late. Each sign of life
  // moves it, usually to a later time: a caller may keep waiting for an old one, and then ask
  // again.
  std::optional<Time> NextDeadline() const;

  // The ranks that have become late, sorted, each once per silence. A call more than 250 ms after
  // NextDeadline means that this process stood still: then none is late, and every rank's time
  // starts afresh.
  std::vector<Silence> Overdue(Time now);

  // The ranks reported by Overdue of which one is to blame: the first one that was late, and those
  // late at most a tenth of the timeout after it, as ranks that wait for one another fall silent at
  // about the same time in any order. The first to fall silent comes first. Ranks that have given a
  // sign of life since, or have exited, are left out; empty if none remain. nullopt while another
  // rank may still join them: ask again after NextDeadline.
  std::optional<std::vector<Silence>> Suspects() const;

  // All silent ranks, regardless of when; the first to fall silent comes first.
  std::vector<Silence> AllSilent() const;

  // The ranks that Overdue would report within a tenth of the timeout after `now` if they stayed
  // silent: when a hang of several nodes ends the round, those that took part.
  std::vector<Silence> NearlyOverdue(Time now) const;

  // Overdue has reported the rank, and it has given no sign of life since and not exited.
  bool is_silent(int rank) const;
  // The ranks given to Start().
  std::vector<int> ranks() const;
  // The rank has sent a beat since Start().
  bool had_beat(int rank) const;
  // The rank's last sign of life, or its start; nullopt if it is unknown.
  std::optional<Time> last_sign(int rank) const;

 private:
  // A rank is
  //  - starting: no sign of life yet; first_beat_timeout runs, if there is one;
  //  - alive: had_sign is set, and timeout runs since `last`;
  //  - silent: reported; no time runs until the next sign of life, which makes it alive;
  //  - exited: signs are ignored, and no time runs.
  // Starting and alive ranks become silent when their time is over, and any of them may exit.
  struct Watched {
    // The last sign of life, or the start.
    Time last;
    bool had_sign = false;
    std::optional<Silence> told{};  // by Overdue, since the last sign of life
    bool exited = false;
    // At least one sign of life was a beat; `step` is the last one in a beat.
    bool had_beat = false;
    std::optional<std::int64_t> step;
  };

  // Their reports, in the order in which they fell silent.
  static std::vector<Silence> Told(std::vector<const Watched*> those);
  Watched* FindRunning(int rank);
  void OnSign(Watched& watched, Time at);
  // Its silence at `now`.
  Silence SilenceOf(int rank, const Watched& watched, Time now) const;
  // When it becomes or became late; nullopt if it cannot.
  std::optional<Time> LimitOf(const Watched& watched) const;
  // When it becomes late; nullopt if it cannot, or was reported already.
  std::optional<Time> DeadlineOf(const Watched& watched) const;

  const HangWatchOptions options_;
  std::map<int, Watched> ranks_;
};

// A worker's progress report: one text datagram.

// The duration of one part of a step.
struct BeatPhase {
  // [a-z][a-z0-9_]*, at most kMaxPhaseName bytes. A name that begins with "wait" means waiting for
  // other ranks.
  std::string name;
  double seconds = 0;  // finite, from 0 to kMaxPhaseSeconds

  bool operator==(const BeatPhase&) const = default;
};

// "beat 3" or "beat 3 1200": rank 3 has completed its step 1200. Facts about the step may follow,
// in any order: "beat 3 1200 loss=2.31 samples_per_second=512 data=0.012 wait=0.02". Names other
// than these two are phases, in seconds. A Python program sends it like this:
//
//   beats = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
//   beats.sendto(b"beat 3 1200", os.environ["MUSTER_BEAT_SOCKET"])
struct Beat {
  int rank = 0;
  // The worker's own step count, for people to read.
  std::optional<std::int64_t> step;
  // Any number, including infinity and NaN: that is worth knowing.
  std::optional<double> loss;
  std::optional<double> samples_per_second;  // finite, from 0
  // In the order of the datagram, each name once.
  std::vector<BeatPhase> phases;
  // The first word that was ignored; the rest counts. Empty: none.
  std::string ignored;

  bool operator==(const Beat&) const = default;
};

// The longest valid beat in bytes.
inline constexpr std::size_t kMaxBeat = 512;
// How many phases of a beat are kept; further ones are ignored.
inline constexpr std::size_t kMaxPhases = 8;
// Short enough for std::string to need no allocation.
inline constexpr std::size_t kMaxPhaseName = 15;
inline constexpr double kMaxPhaseSeconds = 1e6;

// Whether ranks wait for one another in this phase.
bool IsWaitPhase(std::string_view name);

// nullopt if the text is not a beat. Words are separated by spaces; a final newline, as from
// `echo`, is allowed. Rank and step are decimal and not negative. An unreadable fact about the step
// is ignored and does not invalidate the beat.
std::optional<Beat> ParseBeat(std::string_view text);

}  // namespace muster::worker
