// How a worker group ends: real processes, real signals, and no process left behind.
#include "worker/group/worker_group.h"

#include <csignal>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/worker/group_fixture.h"

namespace muster::worker {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

// So long that a test that waits for it fails by its deadline.
constexpr milliseconds kNever = std::chrono::hours(1);
constexpr milliseconds kShort(50);

class WorkerGroupTest : public ReadGroupTest {};

TEST_F(WorkerGroupTest, AllWorkersSucceed) {
  ASSERT_TRUE(RunToEnd({Sh(0, "exit 0"), Sh(1, "exit 0")}));
  EXPECT_EQ(results_[0].end, GroupEnd::kSucceeded);
  EXPECT_FALSE(results_[0].failure.has_value());
  ASSERT_EQ(results_[0].exits.size(), 2u);
  EXPECT_EQ(results_[0].exits[1].rank, 1);
  EXPECT_EQ(results_[0].exits[1].status, ExitStatus{});
  EXPECT_FALSE(results_[0].exits[1].stopped_by_group);
  EXPECT_TRUE(failures_.empty());
}

TEST_F(WorkerGroupTest, WorkerThatEndsEarlyDisturbsNobody) {
  Start({Sh(0, "exit 0"), Sh(1, "trap 'exit 0' USR1; echo ready; while :; do sleep 0.01; done")});
  ASSERT_TRUE(RunUntilOut("ready"));
  ASSERT_TRUE(test::RunUntil(io_, [&] { return group_->running() == 1; }));
  group_->ForwardSignal(SIGUSR1);
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(results_[0].end, GroupEnd::kSucceeded);
}

TEST_F(WorkerGroupTest, DirectoryIsThereForTheWorkerAndGoesWhenNothingIsInIt) {
  std::vector<WorkerSpec> specs = {Sh(0, "test -d " + dir_.Path("0")),
                                   Sh(1, "echo {} > " + dir_.Path("1") + "/error.json")};
  for (WorkerSpec& spec : specs) spec.directory = dir_.Path(std::to_string(spec.rank));
  Start(specs);
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(results_[0].end, GroupEnd::kSucceeded);
  EXPECT_FALSE(std::filesystem::exists(specs[0].directory));
  EXPECT_TRUE(std::filesystem::exists(specs[1].directory + "/error.json"));
}

// A worker's child wrote its error file after the worker had failed.
TEST_F(WorkerGroupTest, DirectoryOfAWorkerThatFailedStays) {
  WorkerSpec failing = Sh(0, "exit 3");
  failing.directory = dir_.Path("0");
  ASSERT_TRUE(RunToEnd({failing}));
  EXPECT_TRUE(std::filesystem::is_directory(failing.directory));
}

TEST_F(WorkerGroupTest, DirectoryThatCannotBeMadeIsNamedWithTheCause) {
  WorkerSpec spec = Sh(0, "exit 0");
  spec.directory = dir_.Path("no/such");
  ASSERT_TRUE(RunToEnd({spec}));
  ASSERT_EQ(failures_.size(), 1u);
  EXPECT_THAT(failures_[0].what, HasSubstr("cannot create log directory " + spec.directory +
                                           ": No such file or directory"));
}

TEST_F(WorkerGroupTest, GroupDiesWhenOneRankExitsWithACode) {
  WorkerSpec failing = Sh(1, "echo it broke >&2; exit 3");
  failing.stderr_spec.keep_tail = true;
  failing.error_file = dir_.Write("error.json", "{}");
  Start({Sleeper(0), failing, Sleeper(2)});
  const std::vector<pid_t> pids = group_->pids();
  ASSERT_TRUE(RunUntilDone());
  ASSERT_EQ(failures_.size(), 1u);
  EXPECT_EQ(failures_[0].rank, 1);
  EXPECT_EQ(failures_[0].pid, pids[1]);
  EXPECT_EQ(failures_[0].status.exit_code, 3);
  EXPECT_EQ(failures_[0].what, "exited with code 3");
  EXPECT_EQ(failures_[0].stderr_tail, "it broke\n");
  EXPECT_EQ(failures_[0].error_file, failing.error_file);
  EXPECT_EQ(results_[0].end, GroupEnd::kFailed);
  EXPECT_EQ(results_[0].failure, failures_[0]);
  EXPECT_EQ(results_[0].exits[0].status->signal, SIGTERM);
  EXPECT_TRUE(results_[0].exits[0].stopped_by_group);
  EXPECT_FALSE(results_[0].exits[1].stopped_by_group);
  for (const pid_t pid : pids) EXPECT_FALSE(IsAlive(pid));
}

TEST_F(WorkerGroupTest, GroupDiesWhenOneRankIsKilled) {
  ASSERT_TRUE(RunToEnd({Sh(0, "kill -SEGV $$"), Sleeper(1)}));
  ASSERT_EQ(failures_.size(), 1u);
  EXPECT_EQ(failures_[0].status.signal, SIGSEGV);
  EXPECT_TRUE(failures_[0].what.starts_with("was killed by SIGSEGV")) << failures_[0].what;
  EXPECT_EQ(results_[0].end, GroupEnd::kFailed);
}

TEST_F(WorkerGroupTest, OnlyTheFirstOfManyFailuresIsTold) {
  ASSERT_TRUE(RunToEnd({Sh(0, "exit 1"), Sh(1, "exit 2"), Sh(2, "exit 3")}));
  EXPECT_EQ(failures_.size(), 1u);
  EXPECT_EQ(results_.size(), 1u);
}

// "A script with wrong arguments is restarted three times." Each rank notices that by itself.
TEST_F(WorkerGroupTest, FailureInWhichAllAreLikelyToEndIsToldWhenAllHave) {
  may_be_end_of_all_ = [](const ExitStatus& status) { return status.exit_code == 2; };
  const std::string go = dir_.Path("go");
  Start({Sh(0, "until [ -e " + go + " ]; do sleep 0.01; done; exit 2"),
         Sh(1, "touch " + go + "; exit 2")});
  ASSERT_TRUE(RunUntilDone());
  ASSERT_EQ(failures_.size(), 1u);
  EXPECT_TRUE(failures_[0].alike);
  EXPECT_EQ(results_[0].other_failures.size(), 1u);
}

TEST_F(WorkerGroupTest, FailureInWhichOnlyOneEndsIsToldAllTheSame) {
  may_be_end_of_all_ = [](const ExitStatus& status) { return status.exit_code == 2; };
  ASSERT_TRUE(RunToEnd({Sh(0, "exit 2"), Sleeper(1)}));
  ASSERT_EQ(failures_.size(), 1u);
  EXPECT_EQ(failures_[0].rank, 0);
  EXPECT_FALSE(failures_[0].alike);
  EXPECT_TRUE(results_[0].exits[1].stopped_by_group);
}

TEST_F(WorkerGroupTest, GroupThatIsStoppedMeanwhileEnds) {
  may_be_end_of_all_ = [](const ExitStatus&) { return true; };
  Start({Sh(0, "exit 2"), Stubborn(1), Stubborn(2)});
  const pid_t first = group_->pids()[0];
  ASSERT_TRUE(RunUntilDead(first));
  group_->Stop(StopLadder::Now());
  ASSERT_TRUE(RunUntilDone());
}

// "Ctrl-Z stopped the agent, and its ranks went on printing into my shell."
TEST_F(WorkerGroupTest, SuspendedGroupStandsStillAsAWholeUntilItContinues) {
  // Neither starts a process: a shell that waits in its own vfork does not show as stopped.
  Start({Sh(0, "setsid sleep 10000 & echo $! >" + dir_.Path("pid") + "; wait")});
  const std::vector<pid_t> pids = {PidFrom("pid"), group_->pids()[0]};
  const auto is_stopped = [](pid_t pid) {
    const std::string stat = ReadAll("/proc/" + std::to_string(pid) + "/stat");
    return stat.find(") T ") != std::string::npos;
  };
  group_->Suspend();
  for (const pid_t pid : pids) EXPECT_TRUE(test::RunUntil(io_, [&] { return is_stopped(pid); }));
  group_->Resume();
  for (const pid_t pid : pids) EXPECT_TRUE(test::RunUntil(io_, [&] { return !is_stopped(pid); }));
  group_->Stop(StopLadder::Now());
  ASSERT_TRUE(RunUntilDone());
}

TEST_F(WorkerGroupTest, SuspendedGroupCanBeStopped) {
  Start({Sh(0,
            "trap 'exit 7' TERM; echo $$ >" + dir_.Path("pid") + "; while :; do sleep 0.01; done")},
        {.first_signal = SIGTERM, .grace = std::chrono::hours(1)});
  PidFrom("pid");
  group_->Suspend();
  group_->Stop({.first_signal = SIGTERM, .grace = std::chrono::hours(1)});
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(results_[0].exits[0].status->exit_code, 7);
}

TEST_F(WorkerGroupTest, WorkerThatDoesNotExistEndsThoseBeforeIt) {
  WorkerSpec missing = Sh(1, "");
  missing.argv = {"./train"};
  ASSERT_TRUE(RunToEnd({Sleeper(0), missing, Sleeper(2)}));
  ASSERT_EQ(failures_.size(), 1u);
  EXPECT_EQ(failures_[0].rank, 1);
  EXPECT_EQ(failures_[0].pid, 0);
  EXPECT_EQ(failures_[0].status.exit_code, kExitNotFound);
  EXPECT_EQ(failures_[0].what, "could not be started: ./train: No such file or directory");
  ASSERT_EQ(results_[0].exits.size(), 1u) << "rank 2 was not tried";
  EXPECT_EQ(results_[0].exits[0].status->signal, SIGTERM);
}

TEST_F(WorkerGroupTest, OnlyWorkerIsNotExecutable) {
  WorkerSpec data = Sh(0, "");
  data.argv = {dir_.Write("data.txt", "1 2 3\n")};
  ASSERT_TRUE(RunToEnd({data}));
  EXPECT_EQ(failures_.at(0).status.exit_code, kExitNotExecutable);
  EXPECT_EQ(failures_[0].what,
            "could not be started: " + data.argv[0] + ": Permission denied (not executable)");
  EXPECT_TRUE(results_[0].exits.empty());
}

TEST_F(WorkerGroupTest, LogFileThatCannotBeOpenedIsAFailureToStart) {
  WorkerSpec spec = Sh(0, "exit 0");
  spec.stdout_spec = {.file = dir_.Write("file", "") + "/stdout.log"};
  ASSERT_TRUE(RunToEnd({spec}));
  EXPECT_EQ(failures_.at(0).what,
            "could not be started: open log file " + spec.stdout_spec.file + ": Not a directory");
}

TEST_F(WorkerGroupTest, StoppedWorkersMayFinishInTheirOwnWay) {
  Start({Sh(0, "trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.01; done")});
  ASSERT_TRUE(RunUntilOut("ready"));
  group_->Stop({.grace = kNever});
  EXPECT_TRUE(results_.empty());
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(results_[0].end, GroupEnd::kStopped);
  EXPECT_EQ(results_[0].exits[0].status, ExitStatus{});
  EXPECT_TRUE(results_[0].exits[0].stopped_by_group);
  EXPECT_TRUE(failures_.empty());
  EXPECT_TRUE(RunUntilOut("saved"));
}

TEST_F(WorkerGroupTest, WorkerThatIgnoresTheSignalIsKilledAfterTheGrace) {
  Start({Stubborn(0)});
  ASSERT_TRUE(RunUntilOut("stubborn"));
  group_->Stop({.grace = kShort});
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(results_[0].exits[0].status->signal, SIGKILL);
}

TEST_F(WorkerGroupTest, SiblingOfAFailureIsKilledAfterTheGraceOfTheOptions) {
  Start({Stubborn(0), Sh(1, "trap 'exit 3' USR1; echo ready; while :; do sleep 0.01; done")},
        {.grace = kShort});
  ASSERT_TRUE(RunUntilOut("stubborn"));
  ASSERT_TRUE(RunUntilOut("ready"));
  ::kill(group_->pids()[1], SIGUSR1);
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(results_[0].exits[0].status->signal, SIGKILL);
  EXPECT_EQ(results_[0].failure->rank, 1);
}

TEST_F(WorkerGroupTest, FirstSignalIsTheLaddersOwn) {
  Start({Sh(0, "trap 'exit 5' INT; echo ready; while :; do sleep 0.01; done")});
  ASSERT_TRUE(RunUntilOut("ready"));
  group_->Stop({.first_signal = SIGINT, .grace = kNever});
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(results_[0].exits[0].status->exit_code, 5);
  EXPECT_TRUE(failures_.empty()) << "how a stopped worker ends is no failure";
}

TEST_F(WorkerGroupTest, SecondStopOnlyHastens) {
  Start({Stubborn(0)});
  ASSERT_TRUE(RunUntilOut("stubborn"));
  group_->Stop({.grace = StopLadder::kForever});
  group_->Stop({.grace = kShort});
  group_->Stop({.grace = kNever});
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(results_[0].exits[0].status->signal, SIGKILL);
}

TEST_F(WorkerGroupTest, StopNowKillsAtOnce) {
  Start({Stubborn(0)});
  ASSERT_TRUE(RunUntilOut("stubborn"));
  group_->Stop({.grace = StopLadder::kForever});
  group_->Stop(StopLadder::Now());
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(results_[0].exits[0].status->signal, SIGKILL);
  group_->Stop(StopLadder::Now());
  io_.poll();
  EXPECT_EQ(results_.size(), 1u) << "the end is told once";
}

TEST_F(WorkerGroupTest, FailureMayBeAnsweredWithAnotherLadder) {
  on_failure_ = [this] { group_->Stop(StopLadder::Now()); };
  ASSERT_TRUE(RunToEnd({Sleeper(0), Sh(1, "exit 3")}));
  EXPECT_EQ(results_[0].end, GroupEnd::kFailed);
  EXPECT_EQ(results_[0].exits[0].status->signal, SIGKILL);
}

TEST_F(WorkerGroupTest, FrozenWorkerCanStillAnswerTheFirstSignal) {
  Start({Sh(0, "trap 'exit 0' TERM; echo ready; kill -STOP $$; sleep 10000")});
  const std::string stat = "/proc/" + std::to_string(group_->pids()[0]) + "/stat";
  ASSERT_TRUE(test::RunUntil(io_, [&] { return ReadAll(stat).find(") T ") != std::string::npos; }));
  group_->Stop({.grace = kNever});
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(results_[0].exits[0].status, ExitStatus{});
}

TEST_F(WorkerGroupTest, SignalIsPassedOnToAll) {
  const std::string script = "trap 'exit 0' USR1; echo ready$RANK; while :; do sleep 0.01; done";
  Start({Sh(0, script), Sh(1, script)});
  ASSERT_TRUE(RunUntilOut("ready0"));
  ASSERT_TRUE(RunUntilOut("ready1"));
  group_->ForwardSignal(SIGUSR1);
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(results_[0].end, GroupEnd::kSucceeded);
}

TEST_F(WorkerGroupTest, ChildrenOfAFailedWorkerDoNotSurviveIt) {
  Start({Sh(0, "sleep 10000 & echo $! > " + dir_.Path("pid") + "; exit 3")});
  ASSERT_TRUE(RunUntilDone());
  EXPECT_TRUE(RunUntilDead(PidFrom("pid")));
}

TEST_F(WorkerGroupTest, ChildrenOfASuccessfulWorkerDoNotSurviveItEither) {
  Start({Sh(0, "sleep 10000 & echo $! > " + dir_.Path("pid") + "; exit 0")});
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(results_[0].end, GroupEnd::kSucceeded);
  EXPECT_TRUE(RunUntilDead(PidFrom("pid")));
}

TEST_F(WorkerGroupTest, StubbornChildrenDieWithAKilledWorker) {
  Start({Sh(0, "trap '' TERM; sleep 10000 & echo $! > " + dir_.Path("pid") + "; wait")});
  const pid_t child = PidFrom("pid");
  group_->Stop({.grace = kShort});
  ASSERT_TRUE(RunUntilDone());
  EXPECT_TRUE(RunUntilDead(child));
}

TEST_F(WorkerGroupTest, DestructionKillsWhatIsLeft) {
  Start({Stubborn(0), Sleeper(1)});
  const std::vector<pid_t> pids = group_->pids();
  ASSERT_TRUE(RunUntilOut("stubborn"));
  group_.reset();
  for (const pid_t pid : pids) EXPECT_FALSE(IsAlive(pid));
  io_.poll();
  EXPECT_TRUE(results_.empty());
}

TEST_F(WorkerGroupTest, DestructionBeforeTheFailureIsTold) {
  WorkerSpec missing = Sh(0, "");
  missing.argv = {"./train"};
  Start({missing});
  group_.reset();
  io_.poll();
  EXPECT_TRUE(failures_.empty());
}

TEST_F(WorkerGroupTest, GroupMayBeDestroyedWhenItIsDone) {
  bool done = false;
  WorkerGroupCallbacks callbacks;
  callbacks.on_done = [&](const GroupResult&) {
    group_.reset();
    done = true;
  };
  group_ = std::make_unique<WorkerGroup>(io_, WorkerGroupOptions{}, console_, callbacks);
  group_->Start({Sh(0, "exit 1"), Sleeper(1)});
  EXPECT_TRUE(test::RunUntil(io_, [&] { return done; }));
}

TEST_F(WorkerGroupTest, SixtyFourWorkers) {
  std::vector<WorkerSpec> specs;
  for (int rank = 0; rank < 64; ++rank) {
    specs.push_back(Sh(rank, "echo hello from $RANK"));
    specs.back().stdout_spec.prefix = "[" + std::to_string(rank) + "]:";
    specs.back().stderr_spec.keep_tail = true;
  }
  Start(std::move(specs));
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(results_[0].end, GroupEnd::kSucceeded);
  EXPECT_EQ(results_[0].exits.size(), 64u);
  for (int rank = 0; rank < 64; ++rank) {
    const std::string number = std::to_string(rank);
    EXPECT_TRUE(RunUntilOut("[" + number + "]:hello from " + number + "\n"));
  }
}

TEST_F(WorkerGroupTest, OthersThatFailedByThemselvesAreListedAndTheStoppedAreNot) {
  Start({Sleeper(0), Sh(1, "exit 3"), Sh(2, "kill -SEGV $$"), Sleeper(3)});
  // Workers that exit by themselves have all exited before the loop notices the first.
  for (const int rank : {1, 2}) {
    const pid_t pid = group_->pids()[static_cast<std::size_t>(rank)];
    ASSERT_TRUE(test::WaitUntil([&] { return !IsAlive(pid); }));
  }
  ASSERT_TRUE(RunUntilDone());
  ASSERT_EQ(failures_.size(), 1u) << "only the first is told at once";
  ASSERT_EQ(results_[0].other_failures.size(), 1u);
  const FailureRecord& other = results_[0].other_failures[0];
  EXPECT_EQ(failures_[0].rank + other.rank, 3);
  EXPECT_EQ(other.pid, group_->pids()[static_cast<std::size_t>(other.rank)]);
  for (const int rank : {0, 3}) {
    EXPECT_TRUE(results_[0].exits[static_cast<std::size_t>(rank)].stopped_by_group);
  }
  for (const int rank : {1, 2}) {
    EXPECT_FALSE(results_[0].exits[static_cast<std::size_t>(rank)].stopped_by_group);
  }
}

TEST_F(WorkerGroupTest, WorkerThatFailedBeforeTheStopIsListed) {
  Start({Sleeper(0), Sh(1, "exit 3")});
  ASSERT_TRUE(test::WaitUntil([&] { return !IsAlive(group_->pids()[1]); }));
  group_->Stop({});
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(results_[0].end, GroupEnd::kStopped);
  ASSERT_EQ(results_[0].other_failures.size(), 1u);
  EXPECT_EQ(results_[0].other_failures[0].what, "exited with code 3");
}

TEST_F(WorkerGroupTest, WorkerIsKilledForAReason) {
  Start({Sleeper(0), Sleeper(1)});
  EXPECT_FALSE(group_->KillFor(::getpid(), SIGKILL, "not ours"));
  EXPECT_FALSE(group_->KillFor(1, SIGKILL, "not ours"));
  EXPECT_TRUE(group_->KillFor(group_->pids()[1], SIGABRT, "it was slow"));
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(failures_.at(0).rank, 1);
  EXPECT_TRUE(failures_[0].what.starts_with("was killed by muster (SIGABRT")) << failures_[0].what;
  EXPECT_TRUE(failures_[0].what.ends_with(", as it was slow")) << failures_[0].what;
  EXPECT_FALSE(group_->KillFor(1, SIGKILL, "over"));
}

TEST_F(WorkerGroupTest, WorkersRunOnTheirCpus) {
  WorkerSpec spec = Sh(0, "grep Cpus_allowed_list /proc/self/status");
  spec.cpus = {0};
  Start({spec});
  EXPECT_TRUE(RunUntilOut("Cpus_allowed_list:\t0\n"));
}

}  // namespace
}  // namespace muster::worker
