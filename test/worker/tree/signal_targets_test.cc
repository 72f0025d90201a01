// Which processes get a worker's signal: a table of processes goes in, the pids that get it come
// out. stop_signal_test covers real shells and programs.
#include "worker/tree/signal_targets.h"

#include <csignal>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text.h"

namespace muster::worker {
namespace {

constexpr std::uint64_t Set(std::initializer_list<int> signals) {
  std::uint64_t set = 0;
  for (const int signal : signals) set |= std::uint64_t{1} << (signal - 1);
  return set;
}

// What background jobs of a shell without job control ignore.
constexpr std::uint64_t kBackground = Set({SIGINT, SIGQUIT});

class SignalTargetsTest : public testing::Test {
 protected:
  // The worker is process 1; the others are numbered in the order in which they are added.
  pid_t Add(pid_t parent, ProcessTraits traits, std::string name = "") {
    const pid_t pid = static_cast<pid_t>(tree_.size()) + 1;
    if (name.empty()) name = traits.program;
    tree_.push_back({.pid = pid,
                     .parent = parent,
                     .start_time = static_cast<std::uint64_t>(pid),
                     .name = std::move(name)});
    traits_[pid] = std::move(traits);
    return pid;
  }
  // "1 2", or with its signal if that differs: "1 2:SIGTERM".
  std::string Targets(int signal = SIGTERM, SignalPurpose purpose = SignalPurpose::kStop) const {
    const auto targets = SignalTargets(tree_, tree_[0], signal, purpose,
                                       [this](pid_t pid) { return traits_.at(pid); });
    return absl::StrJoin(targets, " ", [signal](std::string* out, const SignalTarget& target) {
      absl::StrAppend(out, target.process.pid);
      if (target.signal != signal) absl::StrAppend(out, ":", base::SignalName(target.signal));
    });
  }
  std::string NoticeTargets() const { return Targets(SIGUSR1, SignalPurpose::kNotice); }

  std::vector<ProcessInfo> tree_;
  std::map<pid_t, ProcessTraits> traits_;
};

// "SIGTERM killed my data loader before my rank had saved."
TEST_F(SignalTargetsTest, WhatAProgramHasStartedIsLeftToIt) {
  Add(0, {.program = "python3.11"});
  Add(1, {.program = "python3.11"});
  Add(1, {.program = "ffmpeg"});
  Add(1, {.program = "bash"});
  Add(4, {.program = "train"});
  EXPECT_EQ(Targets(), "1");
  EXPECT_EQ(NoticeTargets(), "1");
}

TEST_F(SignalTargetsTest, ShellAndItsForegroundProgramAndNoFurther) {
  Add(0, {.program = "bash"});
  Add(1, {.program = "dash"});
  Add(2, {.program = "python3.11"});
  Add(3, {.program = "python3.11"});
  EXPECT_EQ(Targets(), "1 2 3");
  EXPECT_EQ(NoticeTargets(), "3") << "a shell without a trap would die";
}

TEST_F(SignalTargetsTest, TrapRunsOnlyWhenTheForegroundProgramHasEnded) {
  Add(0, {.program = "bash", .caught = Set({SIGTERM, SIGUSR1})});
  Add(1, {.program = "python3.11"});
  EXPECT_EQ(Targets(), "1 2");
  EXPECT_EQ(NoticeTargets(), "1 2");
}

// bash itself ignores SIGQUIT, as a background job does.
TEST_F(SignalTargetsTest, BashInTheForegroundIsNoBackgroundJob) {
  Add(0, {.program = "bash", .caught = Set({SIGTERM})});
  Add(1, {.program = "bash", .ignored = Set({SIGQUIT})});
  Add(2, {.program = "python3.11"});
  EXPECT_EQ(Targets(), "1 2 3");
}

TEST_F(SignalTargetsTest, BackgroundProgramMayHaveAHandlerForInterrupts) {
  Add(0, {.program = "bash", .caught = Set({SIGTERM})});
  Add(1, {.program = "python3.11", .ignored = Set({SIGQUIT}), .caught = Set({SIGINT})});
  EXPECT_EQ(Targets(), "1");
}

// A second signal may mean "now, without saving".
TEST_F(SignalTargetsTest, TrapPassesTheSignalOnToBackgroundJobs) {
  Add(0, {.program = "bash", .caught = Set({SIGTERM, SIGUSR1})});
  Add(1, {.program = "python3.11", .ignored = kBackground});
  EXPECT_EQ(Targets(), "1");
  EXPECT_EQ(NoticeTargets(), "1");
}

TEST_F(SignalTargetsTest, ShellThatWaitsForBackgroundJobsWithoutATrap) {
  Add(0, {.program = "bash", .ignored = Set({SIGQUIT})});
  Add(1, {.program = "python3.11", .ignored = kBackground});
  Add(1, {.program = "python3.11", .ignored = kBackground});
  EXPECT_EQ(Targets(), "1 2 3");
  EXPECT_EQ(NoticeTargets(), "2 3");
  EXPECT_EQ(Targets(SIGQUIT), "1 2:SIGTERM 3:SIGTERM") << "which the shell made them ignore";
}

TEST_F(SignalTargetsTest, TrapForTheExitIsNoneForANotice) {
  Add(0, {.program = "bash", .caught = Set({SIGTERM, SIGUSR1, SIGVTALRM})});
  Add(1, {.program = "python3.11", .ignored = kBackground});
  EXPECT_EQ(NoticeTargets(), "2");
}

// `tensorboard & python train.py`: python may need what the script has started until it exits.
TEST_F(SignalTargetsTest, BackgroundJobsAreHelpersOfAForegroundProgram) {
  Add(0, {.program = "dash"});
  Add(1, {.program = "tensorboard", .ignored = kBackground});
  Add(1, {.program = "python3.11"});
  EXPECT_EQ(Targets(), "1 3");
}

// "My script's helper died at once, and the checkpoint was lost." Some programs set their own
// signals, and a function that waits is a shell with a handler for SIGINT.
TEST_F(SignalTargetsTest, HelpersThatLookLikeForegroundProgramsAreLeftAlone) {
  const ProcessTraits helpers[] = {
      {.program = "bash", .ignored = Set({SIGQUIT}), .caught = Set({SIGINT})},
      {.program = "node"},
      {.program = "java", .ignored = Set({SIGINT}), .caught = Set({SIGQUIT})},
      {.program = "python3.11", .caught = kBackground}};
  for (const ProcessTraits& helper : helpers) {
    tree_.clear();
    Add(0, {.program = "bash"});
    Add(1, helper);
    Add(1, {.program = "python3.11"});
    EXPECT_EQ(Targets(), "1 3") << helper.program;
    EXPECT_EQ(NoticeTargets(), "3") << helper.program;
  }
}

TEST_F(SignalTargetsTest, HelperIsLeftAloneBesideAProgramThatIgnoresInterruptsWhileItWaits) {
  Add(0, {.program = "bash"});
  Add(1, {.program = "sleep", .ignored = kBackground});
  Add(1, {.program = "time", .ignored = kBackground});
  Add(3, {.program = "python3.11", .caught = Set({SIGINT})});
  EXPECT_EQ(Targets(), "1 4");
}

// "I pressed Ctrl-C, and half a minute later all was killed": python had got no signal.
TEST_F(SignalTargetsTest, ProgramThatIgnoresInterruptsWhileItWaitsIsNoBackgroundJob) {
  for (const char* program : {"time", "python3.11"}) {
    tree_.clear();
    // bash catches SIGINT while it waits.
    Add(0, {.program = "bash", .caught = Set({SIGINT, SIGTERM})});
    Add(1, {.program = program, .ignored = kBackground});
    Add(2, {.program = "bash", .ignored = Set({SIGQUIT}), .caught = Set({SIGINT})});
    Add(3, {.program = "python3.11", .caught = Set({SIGINT})});
    EXPECT_EQ(Targets(SIGINT), "1 3 4") << program;
  }
}

TEST_F(SignalTargetsTest, WaiterInTheBackgroundIsOneStill) {
  Add(0, {.program = "bash", .caught = Set({SIGINT, SIGTERM})});
  Add(1, {.program = "time", .ignored = kBackground});
  Add(2, {.program = "python3.11", .ignored = Set({SIGQUIT}), .caught = Set({SIGINT})});
  EXPECT_EQ(Targets(), "1");
}

// os.system, Perl's system: "rank 0 did not stop when told to", but it had got no signal.
TEST_F(SignalTargetsTest, SystemLeavesInterruptsToWhatItWaitsFor) {
  Add(0, {.program = "python3.11", .ignored = kBackground});
  Add(1, {.program = "uploader", .ignored = kBackground});
  Add(1, {.program = "wandb"});
  Add(1, {.program = "dash"});
  Add(4, {.program = "python3.11"});
  EXPECT_EQ(Targets(SIGINT), "4 5");
  EXPECT_EQ(Targets(SIGTERM), "1");
  EXPECT_EQ(NoticeTargets(), "1");
}

TEST_F(SignalTargetsTest, ProgramThatIgnoresInterruptsAndWaitsForNobodyGetsThem) {
  Add(0, {.program = "python3.11", .ignored = kBackground});
  Add(1, {.program = "python3.11", .ignored = kBackground});
  EXPECT_EQ(Targets(SIGINT), "1");
}

// The trap's signal came first, and ours a moment later: "now, without saving".
TEST_F(SignalTargetsTest, BackgroundProgramMayHaveAHandlerForSigquit) {
  Add(0, {.program = "bash", .caught = Set({SIGTERM, SIGUSR1})});
  Add(1, {.program = "python3.11", .ignored = Set({SIGINT}), .caught = Set({SIGQUIT})});
  EXPECT_EQ(Targets(), "1");
  EXPECT_EQ(NoticeTargets(), "1");
}

TEST_F(SignalTargetsTest, JobsOfABackgroundShellThatIgnoresInterruptsItselfAreWaitedFor) {
  Add(0, {.program = "bash"});
  Add(1, {.program = "dash", .ignored = kBackground});
  Add(2, {.program = "python3.11", .ignored = kBackground});
  EXPECT_EQ(Targets(), "1 2 3");
}

// "With `python train.py | tee log` the checkpoint failed with a broken pipe."
TEST_F(SignalTargetsTest, WhatReadsTheProgramsOutputIsLeftUntilThatEnds) {
  Add(0, {.program = "bash"});
  Add(1, {.program = "python3.11", .out = "pipe:[7]", .err = "pipe:[7]"});
  Add(1, {.program = "tee", .in = "pipe:[7]", .out = "pipe:[8]"});
  Add(1, {.program = "bash", .in = "pipe:[8]"});
  Add(4, {.program = "sleep", .in = "pipe:[8]"});
  EXPECT_EQ(Targets(), "1 2");
}

// exec > >(tee log)
TEST_F(SignalTargetsTest, WhatReadsTheShellsOutputIsLeftUntilThatEnds) {
  Add(0, {.program = "bash", .out = "pipe:[7]"});
  Add(1, {.program = "tee", .in = "pipe:[7]"});
  Add(1, {.program = "python3.11", .ignored = kBackground, .out = "pipe:[7]"});
  EXPECT_EQ(Targets(), "1 3");
}

// "Ctrl-C never reached my `producer | python train.py`, and SIGUSR1 ended the producer."
TEST_F(SignalTargetsTest, ProgramThatReadsAPipelineIsToldAndItsProducerLeft) {
  Add(0, {.program = "bash"});
  Add(1, {.program = "cat", .out = "pipe:[6]"});
  Add(1, {.program = "zstd", .in = "pipe:[6]", .out = "pipe:[7]"});
  Add(1, {.program = "python3.11",
          .caught = Set({SIGINT, SIGUSR1}),
          .in = "pipe:[7]",
          .out = "pipe:[8]"});
  Add(1, {.program = "tee", .in = "pipe:[8]"});
  EXPECT_EQ(Targets(SIGINT), "1 4");
  EXPECT_EQ(NoticeTargets(), "4");
  EXPECT_EQ(Targets(SIGTERM), "1 2") << "nobody does anything else than end";
}

// seq 3 | while read fold; do python train.py; done
TEST_F(SignalTargetsTest, ProgramThatReadsAPipelineMayBeInAShell) {
  Add(0, {.program = "bash"});
  Add(1, {.program = "seq", .out = "pipe:[7]"});
  Add(1, {.program = "bash", .in = "pipe:[7]"});
  Add(3, {.program = "python3.11", .caught = Set({SIGINT}), .in = "pipe:[7]"});
  EXPECT_EQ(Targets(SIGINT), "1 3 4");
}

// sort removes its files on a signal; the program would not have got it.
TEST_F(SignalTargetsTest, FilterWithAHandlerIsNotWhatAPipelineIsFor) {
  Add(0, {.program = "bash", .caught = Set({SIGTERM})});
  Add(1, {.program = "python3.11", .out = "pipe:[7]"});
  Add(1, {.program = "sort", .caught = Set({SIGTERM}), .in = "pipe:[7]"});
  EXPECT_EQ(Targets(), "1 2");
}

// "With `zcat data.gz | python train.py` zcat got the signal, and nothing was saved"; and `python
// plain.py | gzip >log.gz` lost the end of its log.
TEST_F(SignalTargetsTest, CompressionIsNotWhatAPipelineIsFor) {
  Add(0, {.program = "bash"});
  Add(1, {.program = "gzip", .caught = Set({SIGINT, SIGTERM}), .out = "pipe:[6]"});
  Add(1, {.program = "python3.11", .caught = Set({SIGINT}), .in = "pipe:[6]", .out = "pipe:[7]"});
  Add(1, {.program = "xz", .caught = Set({SIGINT, SIGTERM}), .in = "pipe:[7]"});
  EXPECT_EQ(Targets(SIGINT), "1 3");
  EXPECT_EQ(Targets(SIGTERM), "1 3");
}

// "Ctrl-C never reached the handler of `python producer.py | python train.py`."
TEST_F(SignalTargetsTest, PythonsOwnHandlerForSigintIsNoReasonToBeTheOneThatIsTold) {
  Add(0, {.program = "bash"});
  Add(1, {.program = "python3.11", .caught = Set({SIGINT}), .out = "pipe:[7]"});
  Add(1, {.program = "python3.11", .caught = Set({SIGINT, SIGTERM}), .in = "pipe:[7]"});
  EXPECT_EQ(Targets(SIGINT), "1 3");
}

TEST_F(SignalTargetsTest, OfTwoProgramsInAPipelineTheFirstIsTold) {
  Add(0, {.program = "bash"});
  Add(1, {.program = "python3.11", .caught = Set({SIGINT, SIGTERM}), .out = "pipe:[7]"});
  Add(1, {.program = "python3.11", .caught = Set({SIGINT, SIGTERM}), .in = "pipe:[7]"});
  EXPECT_EQ(Targets(SIGINT), "1 2");
  EXPECT_EQ(Targets(SIGTERM), "1 2");
}

// As from a terminal: it is unknown which of them saves.
TEST_F(SignalTargetsTest, OfPythonProgramsWithoutAHandlerOfTheirOwnAllGetSigint) {
  Add(0, {.program = "bash"});
  Add(1, {.program = "python3.11"});  // a helper of the script
  Add(1, {.program = "python3.11", .caught = Set({SIGINT}), .out = "pipe:[7]"});
  Add(1, {.program = "tee", .in = "pipe:[7]", .out = "pipe:[8]"});
  Add(1, {.program = "python3.11", .caught = Set({SIGINT}), .in = "pipe:[8]"});
  EXPECT_EQ(Targets(SIGINT), "1 3 5");
}

// `exec 3< <(producer)` before the program: the script continued with its next command.
TEST_F(SignalTargetsTest, ShellThatReadsWhatAnOlderHelperWritesIsTold) {
  Add(0, {.program = "bash", .reads = {"pipe:[7]"}});
  Add(1, {.program = "sleep", .ignored = kBackground, .out = "pipe:[7]"});
  Add(1, {.program = "python3.11"});
  EXPECT_EQ(Targets(), "1 3");
}

// text=$(python train.py)
TEST_F(SignalTargetsTest, ShellThatReadsTheProgramsOutputIsLeftUntilThatEnds) {
  Add(0, {.program = "bash", .reads = {"pipe:[7]"}});
  Add(1, {.program = "python3.11", .out = "pipe:[7]"});
  EXPECT_EQ(Targets(), "2");
}

TEST_F(SignalTargetsTest, PipeFromElsewhereIsNoReasonToBeLeftOut) {
  Add(0, {.program = "bash", .in = "pipe:[3]"});
  Add(1, {.program = "python3.11", .in = "pipe:[3]"});
  EXPECT_EQ(Targets(), "1 2");
}

TEST_F(SignalTargetsTest, WaiterLeavesTheSignalToWhoeverItWaitsFor) {
  for (const char* program :
       {"timeout", "time", "strace", "nsys", "ncu", "dumb-init", "setsid", "make"}) {
    tree_.clear();
    Add(0, {.program = program});
    Add(1, {.program = "python3.11"});
    Add(2, {.program = "python3.11"});
    EXPECT_EQ(Targets(), "2") << program;
    EXPECT_EQ(NoticeTargets(), "2") << program;
  }
}

TEST_F(SignalTargetsTest, WaiterThatWaitsForNobodyYetGetsItItself) {
  Add(0, {.program = "timeout"});
  EXPECT_EQ(Targets(), "1");
  EXPECT_EQ(NoticeTargets(), "");
}

TEST_F(SignalTargetsTest, HelpersOfAWaiterAreLeftAlone) {
  Add(0, {.program = "nsys"});
  Add(1, {.program = "nsys"});
  Add(1, {.program = "python3.11"});
  EXPECT_EQ(Targets(), "3");
}

TEST_F(SignalTargetsTest, CondaIsKnownByItsScript) {
  const ProcessTraits ways[] = {
      {.program = "python3.11", .argv = {"python", "/opt/conda/bin/conda", "run", "train"}},
      {.program = "python3.11", .argv = {"python", "-m", "conda", "run", "train"}},
      {.program = "python3.11", .argv = {"python", "-X", "dev", "-u", "conda", "run"}}};
  for (const ProcessTraits& way : ways) {
    tree_.clear();
    Add(0, way);
    Add(1, {.program = "bash"});
    Add(2, {.program = "python3.11"});
    EXPECT_EQ(Targets(), "2 3");
  }
  tree_.clear();
  Add(0, {.program = "python3.11"}, "conda");
  Add(1, {.program = "python3.11"});
  EXPECT_EQ(Targets(), "2");
}

TEST_F(SignalTargetsTest, TrainingThatSpeaksOfCondaIsNoConda) {
  for (const std::vector<std::string>& argv :
       {std::vector<std::string>{"python", "train.py", "conda"}, {"python", "-c", "conda"}}) {
    tree_.clear();
    Add(0, {.program = "python3.11", .argv = argv});
    Add(1, {.program = "python3.11"});
    EXPECT_EQ(Targets(), "1");
  }
}

}  // namespace
}  // namespace muster::worker
