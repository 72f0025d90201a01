// Runs ranks of muster-train as processes of a test.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "test/support/command.h"
#include "test/support/socket_dir.h"

namespace muster::trainer {

// Ranks started together, as a launcher would. The destructor kills those that are still running.
class Ranks {
 public:
  // Starts `arguments` (the program first) as each of `world_size` ranks, which meet at a port that
  // was just free. `environment` (NAME=VALUE) is added to the environment of each.
  Ranks(const std::vector<std::string>& arguments, int world_size,
        const std::vector<std::string>& environment = {});
  // The same with separate arguments for each rank.
  explicit Ranks(const std::vector<std::vector<std::string>>& arguments,
                 const std::vector<std::string>& environment = {});

  test::Command& operator[](int rank) { return commands_[static_cast<std::size_t>(rank)]; }

  // Waits until all have ended. Returns their exit codes: -n for signal n, -1000 for a rank that
  // did not end.
  std::vector<int> Wait();
  // The stderr of all ranks.
  std::string errors() const;

 private:
  std::vector<test::Command> commands_;
};

// Runs ranks of muster-train with `arguments` to their end, and expects each to exit with 0.
// Returns rank 0's stdout.
std::string TrainOk(const std::vector<std::string>& arguments, int world_size = 1);

// The path of the muster-train under test, followed by `arguments`.
std::vector<std::string> MusterTrainWith(const std::vector<std::string>& arguments);

// Receives the beats of ranks, and thereby tracks their steps.
class BeatEar {
 public:
  BeatEar();
  ~BeatEar();
  BeatEar(const BeatEar&) = delete;
  BeatEar& operator=(const BeatEar&) = delete;

  // The variable for the ranks' environment.
  std::string variable() const { return "MUSTER_BEAT_SOCKET=" + dir_.Path("beats"); }

  // Waits until a rank has completed `step` steps; false if that takes longer than any test should.
  bool WaitForStep(std::int64_t step);
  // Waits for `count` more beats, of any step; false as WaitForStep.
  bool WaitForBeats(int count);

 private:
  // The step completed by a rank; nullopt if no beat arrives until `end`.
  std::optional<std::int64_t> Hear(std::chrono::steady_clock::time_point end);

  const test::SocketDir dir_;
  int fd_ = -1;
};

}  // namespace muster::trainer
