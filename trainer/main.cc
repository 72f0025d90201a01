// muster-train: trains an image classifier, alone or as one of the ranks that a launcher started.
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "trainer/app/options.h"
#include "trainer/app/progress.h"
#include "trainer/app/trainer.h"
#include "trainer/core/environment.h"
#include "trainer/core/error_file.h"
#include "trainer/core/one_line.h"
#include "trainer/core/process_setup.h"
#include "trainer/io/durable_file.h"
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
  const absl::Status written = WriteErrorFile(error_file, sentence);
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

absl::StatusOr<TrainAndTest> LoadData(const Options& options) {
  if (options.dataset == DatasetKind::kGenerated) return MakeGeneratedImages();
  return LoadIdxImages(options.data_dir);
}

// Finds out before the training rather than after it that its results could not be written.
absl::Status CheckOutputs(const Options& options) {
  const auto checkpoint = DurableFile::Create(options.checkpoint);
  if (!checkpoint.ok()) return checkpoint.status();
  if (!options.loss_log.empty() && !std::ofstream(options.loss_log, std::ios::app)) {
    return absl::InvalidArgumentError(
        absl::StrCat("write loss log ", options.loss_log, ": cannot be opened"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Summary> Train(const Options& options, const Environment& env, TrainAndTest data,
                              ProcessGroup& group) {
  Progress progress(std::cout, isatty(STDOUT_FILENO) != 0);
  try {
    Trainer trainer(options, env, std::move(data), group, progress);
    return trainer.Run();
  } catch (const std::exception& error) {
    return absl::UnavailableError(absl::StrCat("give all ranks the same model: ", OneLine(error)));
  }
}

int Main(int argc, char** argv) {
  SetUpProcess();
  const Options options = OrFail(ParseOptions(argc, argv));
  if (!options.help.empty()) {
    std::cout << options.help;
    return 0;
  }
  const Environment env = OrFail(ReadEnvironment(LookupInProcess));
  OrFail(CheckBatchSize(options, env.world_size));
  if (env.rank == 0) OrFail(CheckOutputs(options));
  SetThreads(options.threads > 0 ? options.threads : DefaultThreads(env.local_world_size));
  TrainAndTest data = OrFail(LoadData(options));

  const std::unique_ptr<ProcessGroup> group =
      OrFail(ProcessGroup::Join(env, options.comm, options.timeout));
  const Summary summary = OrFail(Train(options, env, std::move(data), *group));
  if (env.rank == 0) std::cout << FormatSummary(summary) << std::flush;
  return 0;
}

}  // namespace
}  // namespace muster::trainer

int main(int argc, char** argv) {
  try {
    return muster::trainer::Main(argc, argv);
  } catch (const std::exception& error) {
    muster::trainer::Fail(absl::UnavailableError(muster::trainer::OneLine(error)));
  }
}
