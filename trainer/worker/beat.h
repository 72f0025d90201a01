// Tells the launcher that this rank is making progress (MUSTER_BEAT_SOCKET), so that the launcher
// can distinguish a hung rank from a busy one, and what its steps are like, so that it can say who
// slows the others down.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::trainer {

// What a step was like, as far as that is known.
struct StepDetails {
  std::optional<double> loss;
  std::optional<double> samples_per_second;  // of this rank
  // A part of the step. In those whose names begin with "wait" the rank has waited for others.
  struct Part {
    const char* name = "";  // [a-z][a-z0-9_]*, at most 15 bytes
    double seconds = 0;
  };
  std::vector<Part> parts;  // at most eight
};

// Sends "beat RANK STEP" as a datagram, and behind it what the step was like (worker/hang/beat.h
// says how). Never blocks: when the socket is full or gone the beat is
// dropped, and the next one makes up for it. Not thread-safe.
class BeatSender {
 public:
  // `socket` is the path that the launcher gives. If it is empty or not a socket's path, nothing is
  // ever sent.
  BeatSender(std::string socket, int rank);
  ~BeatSender();
  BeatSender(const BeatSender&) = delete;
  BeatSender& operator=(const BeatSender&) = delete;

  // Whether anything is ever sent: else nobody needs to find out what a step was like.
  bool sends() const { return fd_ >= 0; }

  // Reports that this rank has completed `step`, 0 or more. One system call, about 2 us; with
  // details about 4 us.
  void Send(std::int64_t step, const StepDetails& details = {});

 private:
  const std::string socket_;
  const int rank_;
  // -1: send nothing.
  int fd_ = -1;
};

}  // namespace muster::trainer
