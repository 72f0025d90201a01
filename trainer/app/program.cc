#include "trainer/app/program.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "base/failure.h"
#include "base/text.h"
#include "trainer/app/options/command_flags.h"
#include "trainer/app/options/options.h"
#include "trainer/app/strategies/strategy.h"
#include "trainer/app/training/agreement.h"
#include "trainer/app/training/loop.h"
#include "trainer/app/training/reports.h"
#include "trainer/app/training/start.h"
#include "trainer/app/training/trainer.h"
#include "trainer/comm/round_store.h"
#include "trainer/compat/tensor_memory.h"
#include "trainer/data/datasets.h"
#include "trainer/io/formats/files.h"
#include "trainer/runtime/failure.h"
#include "trainer/runtime/process_setup.h"
#include "trainer/worker/launcher_link.h"
#include "trainer/worker/step_log.h"
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

// The end of a process of which a thread ended with an exception, as NCCL's watchdog does when a
// peer is gone, while the main thread waits for a GPU that will never answer: a sentence and an
// error file as for any failure, in place of SIGABRT and a core.
[[noreturn]] void EndUncaught() {
  static std::atomic<bool> telling = false;
  // Of several threads one tells; the others wait for the process to end.
  while (telling.exchange(true)) ::pause();
  if (!std::current_exception()) std::abort();
  FailProgram(NameForTheEnd(), FailureNow("a thread ended with an exception"));
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

// kInvalidArgument when the first word looks like a command, and there is none of that name.
absl::Status CheckCommand(int argc, char** argv, const std::vector<Command>& commands) {
  const std::string word = argc > 1 ? argv[1] : "-";
  if (absl::StartsWith(word, "-")) return absl::OkStatus();
  std::vector<std::string> names;
  for (const Command& command : commands) names.emplace_back(command.name);
  const std::string meant = MeantName(word, names);
  return absl::InvalidArgumentError(
      absl::StrCat("there is no command '", word, "'; ",
                   meant.empty() ? absl::StrCat("the commands are ", absl::StrJoin(names, ", "))
                                 : absl::StrCat("did you mean ", meant, "?")));
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
  const absl::StatusOr<Options> options = Caught([&]() -> absl::StatusOr<Options> {
    const absl::Status command = CheckCommand(argc, argv, commands);
    return command.ok() ? ParseOptions(argc, argv, registry) : command;
  });
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
  return OrFail(program,
                RunRank(*options, ReadCommandLine(argc, argv), *env, *std::move(data), progress));
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

namespace {

// Two results in one file would be none.
absl::Status CheckDistinct(const Options& options) {
  const std::pair<const char*, std::string> outputs[] = {
      {"--checkpoint", options.checkpoint.final_path},
      {"--export", options.checkpoint.export_path},
      {"--loss-log", options.report.loss_log},
      {"--metrics", options.report.metrics},
      {"--trace", options.report.trace},
  };
  std::map<std::string, const char*> flags;  // by where their paths lead
  for (const auto& [flag, path] : outputs) {
    std::error_code error;
    const std::filesystem::path place = std::filesystem::weakly_canonical(path, error);
    if (path.empty() || error || std::filesystem::is_other(place, error)) continue;
    const auto [other, is_new] = flags.emplace(place.string(), flag);
    if (is_new) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("write ", path, ": ", other->second, " and ", flag,
                     " name the same file; give each a path of its own"));
  }
  return absl::OkStatus();
}

// Finds out before the training rather than after it that its results could not be written.
absl::Status CheckOutputs(const Options& options) {
  const absl::Status distinct = CheckDistinct(options);
  if (!distinct.ok()) return distinct;
  for (const std::string& path : {options.checkpoint.final_path, options.checkpoint.export_path}) {
    if (path.empty()) continue;
    const auto file = DurableFile::Create(path);
    if (!file.ok()) return file.status();
  }
  for (const std::string& path :
       {options.report.loss_log, options.report.metrics, options.report.trace}) {
    // Opened for appending: what is there may be a part of a run that is to go on.
    if (path.empty() || std::ofstream(path, std::ios::app)) continue;
    return absl::InvalidArgumentError(absl::StrCat("write ", path, ": cannot be opened"));
  }
  return absl::OkStatus();
}

// What `make` returns, or what it throws as a status: "`attempt`: ...".
template <typename Make>
auto Attempt(const char* attempt, const Make& make) -> decltype(make()) {
  try {
    return make();
  } catch (const std::exception& error) {
    // Gloo's words for a connection that ended.
    const bool lost = absl::StrContains(error.what(), "by peer");
    return FailureOf(absl::StrCat(attempt, lost ? ": another rank is gone" : ""), error);
  } catch (...) {
    return FailureNow(attempt);
  }
}

}  // namespace

absl::StatusOr<Splits> PrepareRank(const Options& options, const Environment& env,
                                   Progress& progress) {
  EndOnStopSignals();
  compat::CountTensorMemory();
  const absl::Status suited = CheckWorld(options, env.world_size);
  if (!suited.ok()) return suited;
  const int threads = options.threads > 0 ? options.threads : DefaultThreads(env.local_world_size);
  if (env.rank == 0) {
    const absl::Status writable = CheckOutputs(options);
    if (!writable.ok()) return writable;
    const double gflops = MeasureMatmulGflops();
    progress.Say(StartLine(options, env, threads, gflops));
    if (const auto file = LoadedReferenceBlas()) {
      std::cerr << absl::StrCat(options.program, ": warning: ", ReferenceBlasWarning(*file, gflops),
                                "\n");
    }
  }
  SetThreads(threads);
  SetPrecision(options.tf32, options.deterministic);
  return OpenData(options.data_set, options.data);
}

absl::StatusOr<int> RunRank(const Options& given, const CommandLine& command,
                            const Environment& env, Splits data, Progress& progress) {
  const bool leads = env.rank == 0;
  Options options = given;
  options.shape = data.train->shape();

  auto joined = World::Join(env, options.parallel.comm, options.parallel.timeout);
  if (!joined.ok()) return joined.status();
  LeftOnFailure<World> world(*std::move(joined));
  if (leads) progress.Say(JoinedLine(*world));
  BeatSender beats(env.beat_socket, env.rank);
  beats.Send(0);
  absl::Status status = Attempt("compare the ranks", [&] {
    return CheckRanksAlike(FactsOf(options.settings, data), world->all());
  });
  if (!status.ok()) return status;

  auto model = Attempt("make the model", [&] { return MakeChosenModel(options, world->device()); });
  status = Attempt("compare the models", [&] { return CheckModelsAlike(model, world->all()); });
  if (!status.ok()) return status;
  StepTrace trace;
  if (options.report.profile || !options.report.trace.empty()) {
    trace.phases().WaitFor(world->device());
  }
  RunFacts facts = {.ranks = env.world_size, .gpu = world->device().is_cuda()};
  facts.has_batch_norm = (*model)->has_batch_norm();
  facts.stages = (*model)->stages().size();
  auto made = Attempt("prepare the training", [&] {
    return MakeStrategy(options, *std::move(model), *world, trace.phases());
  });
  if (!made.ok()) return made.status();
  LeftOnFailure<Strategy> strategy(*std::move(made));

  const Job job = {options, env, data, *world, progress, beats};
  auto start = Attempt("find where to start", [&] { return FindStart(job, *strategy); });
  if (!start.ok()) return start.status();
  const TrainState state = start->state;
  options.schedule.total_steps = std::max<std::int64_t>(1, TotalSteps(options, state));
  status = CheckSchedule(options.schedule);
  if (!status.ok()) return status;
  status = Attempt("share the parameters", [&] {
    strategy->Begin();
    return absl::OkStatus();
  });
  if (!status.ok()) return status;

  facts.data_ranks = strategy->place().parts;
  facts.steps = options.schedule.total_steps;
  std::vector<std::string> lines = strategy->StartLines();
  for (const std::string& sentence : FlagsWithoutEffect(options, command, facts)) {
    lines.push_back(absl::StrCat("note: ", sentence));
  }
  for (const std::string& line : lines) {
    if (leads) progress.Say(line);
  }

  std::unique_ptr<Reporter> reporter;
  status = Attempt("open the log files", [&] {
    absl::Status mine;
    if (leads) {
      auto opened = Reporter::Open(options.report, state.step);
      mine = opened.status();
      if (opened.ok()) reporter = *std::move(opened);
    }
    return FirstFailure(mine, world->all());
  });
  if (!status.ok()) return status;
  Saver saver(job, *std::move(start));
  if (!options.report.trace.empty()) trace.Record(options.report.trace_steps);
  RememberStopSignals();
  Loop loop = {.job = job,
               .strategy = *strategy,
               .saver = saver,
               .reporter = reporter.get(),
               .trace = trace,
               .resumed_step = state.step,
               .schedule = options.schedule,
               .state = state};
  const absl::StatusOr<Summary> summary = Train(loop);
  if (!summary.ok()) return summary.status();
  strategy.Destroy();
  world.Destroy();

  const bool stopped = summary->stop_signal != 0;
  if (leads && stopped) {
    progress.Say(absl::StrCat(
        "stopped by ", base::SignalName(summary->stop_signal), " after step ", summary->steps, "; ",
        summary->checkpoint.empty() ? "nothing is saved without --checkpoint-dir"
                                    : absl::StrCat("checkpoint ", summary->checkpoint)));
  } else if (leads) {
    std::cout << FormatSummary(*summary) << std::flush;
  }
  return stopped ? StopExitCode(summary->stop_signal) : 0;
}

}  // namespace muster::trainer
