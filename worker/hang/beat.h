// What a worker says when it has made progress: one datagram of text.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace muster::worker {

// "beat 3" or "beat 3 1200": rank 3 has done its step 1200. A Python program sends it like this:
//
//   beats = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
//   beats.sendto(b"beat 3 1200", os.environ["MUSTER_BEAT_SOCKET"])
struct Beat {
  int rank = 0;
  // How far the worker has come, by its own count; for people to read.
  std::optional<std::int64_t> step;

  bool operator==(const Beat&) const = default;
};

// The longest text that can be a beat, in bytes.
inline constexpr std::size_t kMaxBeat = 64;

// nullopt when the text is not a beat. Words are separated by spaces; a newline at the end, as
// `echo` writes it, does no harm. Rank and step are decimal and not negative.
std::optional<Beat> ParseBeat(std::string_view text);

}  // namespace muster::worker
