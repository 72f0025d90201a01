// muster-train: trains a network, alone or as one of the ranks that a launcher started, and puts it
// to use.
#include <sys/ioctl.h>
#include <unistd.h>

#include <iostream>

#include "trainer/app/commands.h"
#include "trainer/app/compare.h"
#include "trainer/app/generate.h"
#include "trainer/app/program.h"

namespace muster::trainer {
namespace {

// Of lines for a file or a pipe, in columns.
constexpr int kPageWidth = 120;

absl::StatusOr<int> RunScheduleHere(int argc, const char* const* argv, const Registry& /*registry*/,
                                    std::ostream& out) {
  winsize size = {};
  const bool terminal = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return RunSchedule(argc, argv, terminal ? size.ws_col : kPageWidth, out);
}

absl::StatusOr<int> RunTokenize(int argc, const char* const* argv, const Registry& /*registry*/,
                                std::ostream& out) {
  return Tokenize(argc, argv, std::cin, out, isatty(STDOUT_FILENO) != 0);
}

}  // namespace
}  // namespace muster::trainer

int main(int argc, char** argv) {
  namespace mt = muster::trainer;
  return mt::RunProgram(argc, argv, mt::BuiltInRecipes(),
                        {{"compare", mt::RunCompare},
                         {"consolidate", mt::RunConsolidate},
                         {"eval", mt::RunEval},
                         {"generate", mt::RunGenerate},
                         {"predict", mt::RunPredict},
                         {"schedule", mt::RunScheduleHere},
                         {"tokenize", mt::RunTokenize}});
}
