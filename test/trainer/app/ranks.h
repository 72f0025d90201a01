// Ranks of muster-train as processes of a test.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "test/support/command.h"
#include "test/support/socket_dir.h"

namespace muster::trainer {

// Ranks that were started together, as a launcher would. Those that are left are killed with this
// object.
class Ranks {
 public:
  // Starts `arguments` (the program first) as each of `world_size` ranks, that meet at a port that
  // was free a moment ago; `environment` (NAME=VALUE) is that of all of them.
  Ranks(const std::vector<std::string>& arguments, int world_size,
        const std::vector<std::string>& environment = {});

  test::Command& operator[](int rank) { return commands_[static_cast<std::size_t>(rank)]; }

  // Waits until all have ended; their exit codes, -n for signal n, -1000 for one that did not end.
  std::vector<int> Wait();
  // The standard error of all of them.
  std::string errors() const;

 private:
  std::vector<test::Command> commands_;
};

// Starts ranks of muster-train with `arguments`, waits, and expects each to exit with 0. Returns
// what rank 0 wrote to its standard output.
std::string TrainOk(const std::vector<std::string>& arguments, int world_size = 1);

// The muster-train under test, with `arguments` behind it.
std::vector<std::string> MusterTrainWith(const std::vector<std::string>& arguments);

// Hears the beats of ranks, and so knows at which step they are.
class BeatEar {
 public:
  BeatEar();
  ~BeatEar();
  BeatEar(const BeatEar&) = delete;
  BeatEar& operator=(const BeatEar&) = delete;

  // For the environment of ranks.
  std::string variable() const { return "MUSTER_BEAT_SOCKET=" + dir_.Path("beats"); }

  // Waits until a rank has done `step` steps; false when that takes longer than any test should.
  bool WaitForStep(std::int64_t step);

 private:
  const test::SocketDir dir_;
  int fd_ = -1;
};

}  // namespace muster::trainer
