// Converts the launch tree's values to and from proto/launch.proto.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "launcher/machine/environment.h"
#include "launcher/remote/fan_out.h"
#include "launcher/remote/host_list.h"
#include "proto/launch.pb.h"

namespace muster::launcher {

Host ToHost(const launch::v1::Host& message);
// Sets no failures.
launch::v1::Host ToMessage(const Host& host, HostIndex index);
FanOut::Charge ToCharge(const launch::v1::Host& message);

launch::v1::News ToMessage(const HostNews& news);
// Cuts texts and makes them safe to show.
HostNews ToNews(const launch::v1::News& message);

// The framing of messages between two processes of a launch tree.

// Upwards a stream begins with the greeting, as a login shell may print anything before Muster
// runs; downwards there is none. Then frames follow: a big-endian length of four bytes, and a
// message of proto/launch.proto of that length.
inline constexpr absl::string_view kGreeting("\0muster launch 1\n", 16);

// Downwards, host lists and the user's command line can be long; upwards, output is split.
inline constexpr std::size_t kMaxFrameDown = 64 * 1024 * 1024;
inline constexpr std::size_t kMaxFrameUp = 1024 * 1024;
// Limit on text before the greeting; after more than this, none is expected.
inline constexpr std::size_t kMaxNoise = 64 * 1024;

// `message` as a frame. It must not exceed the reader's limit.
std::string ToFrame(absl::string_view message);

// Extracts frames from a byte stream. Its memory is bounded by the limit and the largest piece
// added.
class FrameReader {
 public:
  FrameReader(std::size_t limit, bool expects_greeting)
      : limit_(limit), greeted_(!expects_greeting) {}

  void Add(absl::string_view bytes) { bytes_.append(bytes.data(), bytes.size()); }

  // The next message, or nullopt if more bytes are needed. InvalidArgument, then and in all later
  // calls, if the stream is not valid.
  absl::StatusOr<std::optional<std::string>> Next();

  bool greeted() const { return greeted_; }
  // The text before the greeting.
  const std::string& noise() const { return noise_; }
  // Before the greeting: everything received so far.
  std::string heard() const { return noise_ + bytes_; }

 private:
  absl::Status FindGreeting();

  const std::size_t limit_;
  bool greeted_;
  std::string noise_;
  // Bytes not consumed yet, from `begin_` on.
  std::string bytes_;
  std::size_t begin_ = 0;
};

// Splits a byte stream at line ends, so that streams can be merged without mixing lines.

class WholeLines {
 public:
  // A longer line is split.
  static constexpr std::size_t kMaxLine = 64 * 1024;

  // Adds `bytes`, and returns the complete lines that can be passed on.
  std::string Add(std::string_view bytes) {
    const std::size_t end = bytes.rfind('\n');
    std::string ready;
    if (end != std::string_view::npos) {
      ready = std::move(rest_);
      rest_.clear();
      ready.append(bytes.substr(0, end + 1));
      bytes.remove_prefix(end + 1);
    }
    rest_.append(bytes);
    if (rest_.size() >= kMaxLine) ready += TakeRest();
    return ready;
  }

  // The incomplete last line.
  const std::string& rest() const { return rest_; }

  // Removes and returns the incomplete last line.
  std::string TakeRest() {
    std::string rest = std::move(rest_);
    rest_.clear();
    return rest;
  }

 private:
  std::string rest_;
};

// Keep-alives between a host of a launch tree and its parent.

// The interval at which both send one.
inline constexpr std::chrono::seconds kBeat(5);

// The peer is gone after this long without one. A broken connection is noticed at once; this is for
// a machine without power or a pulled cable.
inline constexpr std::chrono::seconds kSilence(30);

// Describes the terminals of the root to the workers on other hosts.

// Which of this process's stdout and stderr are terminals, and their current sizes.
launch::v1::Terminals TerminalsHere();

// Adds them to the job, with TERM and COLORTERM from `own`, unless the user has set these for the
// job.
void AddTerminals(launch::v1::Job& job, const Environment& own);

}  // namespace muster::launcher
