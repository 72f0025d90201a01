// What a worker says when it has made progress: one datagram of text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::worker {

// How long one part of the step took.
struct BeatPhase {
  // [a-z][a-z0-9_]*, at most kMaxPhaseName bytes. If it begins with "wait" the rank has waited for
  // others meanwhile.
  std::string name;
  double seconds = 0;  // finite, from 0 to kMaxPhaseSeconds

  bool operator==(const BeatPhase&) const = default;
};

// "beat 3" or "beat 3 1200": rank 3 has done its step 1200. Behind that may be said, in any order,
// what the step was like: "beat 3 1200 loss=2.31 samples_per_second=512 data=0.012 wait=0.02".
// Names other than these two are phases, in seconds. A Python program sends it like this:
//
//   beats = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
//   beats.sendto(b"beat 3 1200", os.environ["MUSTER_BEAT_SOCKET"])
struct Beat {
  int rank = 0;
  // How far the worker has come, by its own count; for people to read.
  std::optional<std::int64_t> step;
  // Any number, also one that is infinite or none: that is worth knowing.
  std::optional<double> loss;
  std::optional<double> samples_per_second;  // finite, from 0
  // In the order in which they were said, each name once.
  std::vector<BeatPhase> phases;
  // The first word that was ignored; the rest counts. Empty: there was none.
  std::string ignored;

  bool operator==(const Beat&) const = default;
};

// The longest text that can be a beat, in bytes.
inline constexpr std::size_t kMaxBeat = 512;
// The phases that are kept of a beat; further ones are ignored.
inline constexpr std::size_t kMaxPhases = 8;
// So short that a std::string has no memory of its own for it.
inline constexpr std::size_t kMaxPhaseName = 15;
inline constexpr double kMaxPhaseSeconds = 1e6;

// Whether ranks wait for one another in this phase.
bool IsWaitPhase(std::string_view name);

// nullopt when the text is not a beat. Words are separated by spaces; a newline at the end, as
// `echo` writes it, does no harm. Rank and step are decimal and not negative. What is said of the
// step never makes it less of a beat: a word of it that cannot be read is ignored.
std::optional<Beat> ParseBeat(std::string_view text);

}  // namespace muster::worker
