// A program that trains what a registry holds, from its command line to its exit code.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/recipe/registry.h"

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

}  // namespace muster::trainer
