// muster-train: trains a network, alone or as one of the ranks that a launcher started, and puts it
// to use.
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "trainer/app/commands/eval.h"
#include "trainer/app/commands/generate.h"
#include "trainer/app/commands/predict.h"
#include "trainer/app/compare.h"
#include "trainer/app/options/options.h"
#include "trainer/app/reports/progress.h"
#include "trainer/app/run.h"
#include "trainer/app/tokenize.h"
#include "trainer/comm/round_store.h"
#include "trainer/worker/environment.h"
#include "trainer/worker/error_file.h"
#include "trainer/worker/failure.h"
#include "trainer/worker/process_setup.h"
#include "worker/env_names.h"

namespace muster::trainer {
namespace {

// Tells the person and the launcher why this rank has failed.
void Report(const absl::Status& status) {
  int rank = 0;
  const bool ranked = absl::SimpleAtoi(LookupInProcess(worker::env::kRank).value_or(""), &rank);
  const std::string sentence =
      absl::StrCat(ranked ? absl::StrCat("rank ", rank, ": ") : "", std::string(status.message()));
  std::cerr << absl::StrCat("muster-train: ", sentence, "\n") << std::flush;
  const std::string error_file = LookupInProcess(worker::env::kErrorFile).value_or("");
  const absl::Status written = WriteErrorFile(error_file, sentence, StackOf(status));
  if (!written.ok()) std::cerr << absl::StrCat("muster-train: ", written.message(), "\n");
}

// Ends the process at once: with 2 when the user has to change something, else with 1. Nothing is
// destroyed: c10d's destructors wait for peers that may be gone.
[[noreturn]] void End(const absl::Status& status) {
  std::cout.flush();
  std::_Exit(absl::IsInvalidArgument(status) ? 2 : 1);
}

[[noreturn]] void Fail(const absl::Status& status) {
  Report(status);
  End(status);
}

// The same for a rank that has not joined the others, which would wait for it.
[[noreturn]] void FailBeforeJoining(const absl::Status& status, const Environment& env,
                                    std::chrono::milliseconds timeout) {
  Report(status);
  TellUnfit(env, status, timeout);
  End(status);
}

// The value in `result`; does not return without one.
template <typename T>
T OrFail(absl::StatusOr<T> result) {
  if (!result.ok()) Fail(result.status());
  return *std::move(result);
}

absl::StatusOr<int> RunTokenize(int argc, const char* const* argv, std::ostream& out) {
  return Tokenize(argc, argv, std::cin, out, isatty(STDOUT_FILENO) != 0);
}

// What the first word of the command line asks for. Without such a word: training.
struct Command {
  std::string_view name;
  absl::StatusOr<int> (*run)(int argc, const char* const* argv, std::ostream& out);
};

constexpr Command kCommands[] = {
    {"compare", Compare},    {"eval", RunEval},         {"generate", RunGenerate},
    {"predict", RunPredict}, {"tokenize", RunTokenize},
};

int Main(int argc, char** argv) {
  SetUpProcess();
  for (const Command& command : kCommands) {
    if (argc > 1 && argv[1] == command.name) {
      return OrFail(command.run(argc - 1, argv + 1, std::cout));
    }
  }
  const absl::StatusOr<Options> options = ParseOptions(argc, argv);
  if (options.ok() && !options->help.empty()) {
    std::cout << options->help;
    return 0;
  }
  const absl::StatusOr<Environment> env = ReadEnvironment(LookupInProcess);
  if (!env.ok()) Fail(options.ok() ? env.status() : options.status());
  if (!options.ok()) FailBeforeJoining(options.status(), *env, ParallelOptions().timeout);

  Progress progress(std::cout, isatty(STDOUT_FILENO) != 0);
  absl::StatusOr<Splits> data = PrepareRank(*options, *env, progress);
  if (!data.ok()) FailBeforeJoining(data.status(), *env, options->parallel.timeout);
  return OrFail(RunRank(*options, *env, *std::move(data), progress));
}

}  // namespace
}  // namespace muster::trainer

int main(int argc, char** argv) {
  try {
    return muster::trainer::Main(argc, argv);
  } catch (const std::exception& error) {
    muster::trainer::Fail(muster::trainer::FailureOf("", error));
  }
}
