#include "trainer/app/program.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "base/failure.h"
#include "trainer/app/options/options.h"
#include "trainer/app/reports/progress.h"
#include "trainer/app/run.h"
#include "trainer/comm/round_store.h"
#include "trainer/worker/environment.h"
#include "trainer/worker/error_file.h"
#include "trainer/worker/failure.h"
#include "trainer/worker/printable.h"
#include "trainer/worker/process_setup.h"
#include "worker/env_names.h"

namespace muster::trainer {
namespace {

// Tells the person and the launcher why this rank has failed.
void TellFailure(const std::string& program, const absl::Status& status) {
  int rank = 0;
  const bool ranked = absl::SimpleAtoi(LookupInProcess(worker::env::kRank).value_or(""), &rank);
  const std::string sentence = Printable(
      absl::StrCat(ranked ? absl::StrCat("rank ", rank, ": ") : "", std::string(status.message())));
  std::cerr << absl::StrCat(program, ": ", sentence, "\n") << std::flush;
  const std::string error_file = LookupInProcess(worker::env::kErrorFile).value_or("");
  const absl::Status written = WriteErrorFile(error_file, sentence, StackOf(status));
  if (!written.ok()) std::cerr << absl::StrCat(program, ": ", written.message(), "\n");
}

// Ends the process at once: with 2 when the user has to change something, else with 1. Nothing is
// destroyed: c10d's destructors wait for peers that may be gone.
[[noreturn]] void End(const absl::Status& status) {
  std::cout.flush();
  std::_Exit(absl::IsInvalidArgument(status) ? 2 : 1);
}

// What std::terminate needs to know of RunProgram's arguments.
std::string& NameForTheEnd() {
  static std::string* const name = new std::string();  // threads may end after main() has
  return *name;
}

// The end of a process of which a thread has ended by an exception, as NCCL's watchdog does when a
// peer is gone, while the main thread waits for a GPU that will never answer: a sentence and an
// error file as for any failure, in place of SIGABRT and a core.
[[noreturn]] void EndUncaught() {
  static std::atomic<bool> telling = false;
  // Of several threads one tells; the others wait for the process to end.
  while (telling.exchange(true)) ::pause();
  if (!std::current_exception()) std::abort();
  FailProgram(NameForTheEnd(), FailureNow("a thread has ended by an exception"));
}

// The value in `result`; does not return without one.
template <typename T>
T OrFail(const std::string& program, absl::StatusOr<T> result) {
  if (!result.ok()) FailProgram(program, result.status());
  return *std::move(result);
}

// `code`; does not return when what was said on stdout, which is what was asked for, is lost.
int Delivered(const std::string& program, int code) {
  errno = 0;
  std::cout.flush();
  if (std::cout && std::fflush(stdout) == 0) return code;
  // Why an earlier write failed is not known any more.
  const std::string cause = errno != 0 ? base::SystemCause() : "not all of the answer arrived";
  FailProgram(program, base::Failure(absl::StatusCode::kUnavailable, "write", "to stdout", cause));
}

// What `make` returns, or why it does not: code of a recipe may throw.
template <typename Make>
std::invoke_result_t<Make> Caught(Make make) {
  try {
    return make();
  } catch (...) {
    return FailureNow("");
  }
}

int Run(int argc, char** argv, const Registry& registry, const std::vector<Command>& commands) {
  SetUpProcess();
  const std::string& program = registry.program;
  for (const Command& command : commands) {
    if (argc > 1 && argv[1] == command.name) {
      const int code = OrFail(program, command.run(argc - 1, argv + 1, registry, std::cout));
      return Delivered(program, code);
    }
  }
  const absl::StatusOr<Options> options =
      Caught([&] { return ParseOptions(argc, argv, registry); });
  if (options.ok() && !options->help.empty()) {
    std::cout << options->help;
    return Delivered(program, 0);
  }
  const absl::StatusOr<Environment> env = ReadEnvironment(LookupInProcess);
  if (!options.ok())
    FailProgram(program, BeforeJoining(options.status(), ParallelOptions().timeout));
  if (!env.ok()) FailProgram(program, env.status());
  Progress progress(std::cout, isatty(STDOUT_FILENO) != 0);
  absl::StatusOr<Splits> data = Caught([&] { return PrepareRank(*options, *env, progress); });
  if (!data.ok()) FailProgram(program, BeforeJoining(data.status(), options->parallel.timeout));
  return OrFail(program, RunRank(*options, *env, *std::move(data), progress));
}

}  // namespace

void FailProgram(const std::string& program, const absl::Status& failure) {
  TellFailure(program, failure);
  const absl::StatusOr<Environment> env = ReadEnvironment(LookupInProcess);
  const auto timeout = TimeToTell(failure);
  if (timeout && env.ok()) TellUnfit(*env, failure, *timeout);
  End(failure);
}

int RunProgram(int argc, char** argv, const Registry& registry,
               const std::vector<Command>& commands) {
  NameForTheEnd() = registry.program;
  std::set_terminate(EndUncaught);
  // Whoever starts a program without its name gives no argument at all.
  std::string name = registry.program;
  char* nameless[] = {name.data(), nullptr};
  try {
    return argc > 0 ? Run(argc, argv, registry, commands) : Run(1, nameless, registry, commands);
  } catch (...) {
    FailProgram(registry.program, FailureNow(""));
  }
}

}  // namespace muster::trainer
