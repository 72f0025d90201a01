// How messages are put on a byte stream between two processes of a launch tree.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::launcher {

// A stream is a greeting, followed by frames: four bytes of length, the most significant first, and
// so many bytes of a message of proto/launch.proto. Downwards there is no greeting. Upwards there
// is, as a login shell may print whatever it likes before Muster runs there.
inline constexpr absl::string_view kGreeting("\0muster launch 1\n", 16);

// Lists of hosts and the user's command line can be long; what comes up is cut in pieces.
inline constexpr std::size_t kMaxFrameDown = 64 * 1024 * 1024;
inline constexpr std::size_t kMaxFrameUp = 1024 * 1024;
// The most of what came before the greeting that is kept; beyond kMaxNoise there is none to come.
inline constexpr std::size_t kMaxNoise = 64 * 1024;

// `message` as a frame. It must not be longer than the reader's limit.
std::string ToFrame(absl::string_view message);

// Takes frames off a stream that comes in pieces. Its memory is bounded by the limit and the
// largest piece.
class FrameReader {
 public:
  FrameReader(std::size_t limit, bool expects_greeting)
      : limit_(limit), greeted_(!expects_greeting) {}

  void Add(absl::string_view bytes) { bytes_.append(bytes.data(), bytes.size()); }

  // The next message, or nothing if more bytes are needed. InvalidArgument when this is no such
  // stream; from then on always.
  absl::StatusOr<std::optional<std::string>> Next();

  bool greeted() const { return greeted_; }
  // What came before the greeting.
  const std::string& noise() const { return noise_; }
  // As long as there was none: all that has come.
  std::string heard() const { return noise_ + bytes_; }

 private:
  absl::Status FindGreeting();

  const std::size_t limit_;
  bool greeted_;
  std::string noise_;
  // What was added and is not yet done with, from `begin_` on.
  std::string bytes_;
  std::size_t begin_ = 0;
};

}  // namespace muster::launcher
