// muster-train: trains a network, alone or as one of the ranks that a launcher started.
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "trainer/app/compare.h"
#include "trainer/app/options/options.h"
#include "trainer/app/run.h"
#include "trainer/worker/environment.h"
#include "trainer/worker/error_file.h"
#include "trainer/worker/failure.h"
#include "trainer/worker/process_setup.h"
#include "worker/env_names.h"

namespace muster::trainer {
namespace {

// Tells the person and the launcher why, and ends the process at once: with 2 when the user has to
// change something, else with 1. Nothing is destroyed: c10d's destructors wait for peers that may
// be gone.
[[noreturn]] void Fail(const absl::Status& status) {
  int rank = 0;
  const bool ranked = absl::SimpleAtoi(LookupInProcess(worker::env::kRank).value_or(""), &rank);
  const std::string sentence =
      absl::StrCat(ranked ? absl::StrCat("rank ", rank, ": ") : "", std::string(status.message()));
  std::cerr << absl::StrCat("muster-train: ", sentence, "\n") << std::flush;
  const std::string error_file = LookupInProcess(worker::env::kErrorFile).value_or("");
  const absl::Status written = WriteErrorFile(error_file, sentence, StackOf(status));
  if (!written.ok()) std::cerr << absl::StrCat("muster-train: ", written.message(), "\n");
  std::cout.flush();
  std::_Exit(absl::IsInvalidArgument(status) ? 2 : 1);
}

// The value in `result`; does not return without one.
template <typename T>
T OrFail(absl::StatusOr<T> result) {
  if (!result.ok()) Fail(result.status());
  return *std::move(result);
}

void OrFail(const absl::Status& status) {
  if (!status.ok()) Fail(status);
}

int Main(int argc, char** argv) {
  SetUpProcess();
  if (argc > 1 && std::string_view(argv[1]) == "compare") {
    return OrFail(Compare(argc - 1, argv + 1, std::cout));
  }
  const Options options = OrFail(ParseOptions(argc, argv));
  if (!options.help.empty()) {
    std::cout << options.help;
    return 0;
  }
  const Environment env = OrFail(ReadEnvironment(LookupInProcess));
  OrFail(CheckWorld(options, env.world_size));
  return OrFail(RunRank(options, env));
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
