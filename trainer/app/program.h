// A program that trains what a registry holds, from its command line to its exit code.
#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/app/options/idle_flags.h"
#include "trainer/app/options/options.h"
#include "trainer/data/dataset.h"
#include "trainer/models/registry.h"
#include "trainer/worker/launcher_link.h"
#include "trainer/worker/step_log.h"

namespace muster::trainer {

// What the first word of the command line asks for. `run` gets the arguments from that word on and
// returns the exit code.
struct Command {
  std::string_view name;
  absl::StatusOr<int> (*run)(int argc, const char* const* argv, const Registry& registry,
                             std::ostream& out);
};

// Call it from main(), before anything else is done with LibTorch. Without a command's name it
// trains. Returns the exit code. After an error it tells the person and the launcher, and ends the
// process at once: with 2 when the user has to change something, else with 1. So it does when any
// thread of the process ends by an exception: it becomes the terminate handler.
int RunProgram(int argc, char** argv, const Registry& registry,
               const std::vector<Command>& commands);

// Ends the process in the same way because of `failure`: for what fails before there is a registry.
[[noreturn]] void FailProgram(const std::string& program, const absl::Status& failure);

// Owns what only a run that has succeeded may destroy, as the destructors of c10d's objects wait
// for peers that may be gone. Without Destroy() it is left to the end of the process.
template <typename T>
class LeftOnFailure {
 public:
  explicit LeftOnFailure(std::unique_ptr<T> object) : object_(std::move(object)) {}
  ~LeftOnFailure() { static_cast<void>(object_.release()); }
  LeftOnFailure(const LeftOnFailure&) = delete;
  LeftOnFailure& operator=(const LeftOnFailure&) = delete;

  T& operator*() { return *object_; }
  T* operator->() { return object_.get(); }
  void Destroy() { object_.reset(); }

 private:
  std::unique_ptr<T> object_;
};

// Runs muster-train as one rank, from the options to the summary.

// Checks that this rank can take part: that its options suit its world, its output files can be
// written, and its data can be opened, which it returns. Rank 0 prints what is trained to
// `progress`. kInvalidArgument and one sentence when the user has to change something; the other
// ranks do not know of it then. Throws what OpenData throws.
absl::StatusOr<Splits> PrepareRank(const Options& options, const Environment& env,
                                   Progress& progress);

// Trains on the data that PrepareRank returned, with the options that `command` has, of which some
// may be said to have no effect; rank 0 prints to `progress` and stdout. Returns the
// exit code: 0, or the StopExitCode() of the signal that stopped the run. After an error, exit
// without destroying LibTorch objects: c10d's destructors wait for peers that may be gone.
absl::StatusOr<int> RunRank(const Options& options, const CommandLine& command,
                            const Environment& env, Splits data, Progress& progress);

}  // namespace muster::trainer
