// Evidence from real processes: /proc, and stacks from the test's own command and from gdb.
#include "worker/hang/evidence.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "test/worker/group_fixture.h"
#include "worker/hang/process_evidence.h"
#include "worker/process/process_state.h"

namespace muster::worker {
namespace {

using absl::StrContains;

class EvidenceTest : public ReadGroupTest {
 protected:
  static StackCommand Command(const std::string& text) { return *StackCommand::Parse(text); }

  // Of the group's ranks, in order.
  void Collect(EvidenceOptions options) {
    std::vector<EvidenceTarget> targets;
    for (const pid_t pid : group_->pids()) {
      targets.push_back(
          {.rank = static_cast<int>(targets.size()), .pid = pid, .why = "gave no sign of life"});
    }
    options.on_command = [this](pid_t pid) {
      commands_.push_back(pid);
      group_->ExcludeChild(pid);
    };
    run_ = std::make_unique<EvidenceRun>(io_, std::move(options), std::move(targets),
                                         [this](std::vector<Evidence> evidence) {
                                           evidence_ = std::move(evidence);
                                           done_ = true;
                                           run_.reset();
                                         });
  }
  bool RunUntilCollected() {
    return test::RunUntil(io_, [this] { return done_; });
  }
  bool RunUntilState(pid_t pid, char state) {
    return test::RunUntil(io_, [=] {
      const auto task = ReadState(pid);
      return task.has_value() && task->state == state;
    });
  }

  std::unique_ptr<EvidenceRun> run_;
  std::vector<Evidence> evidence_;
  std::vector<pid_t> commands_;
  bool done_ = false;
};

TEST_F(EvidenceTest, ShowsWhereAProcessAndItsChildrenWait) {
  Start({Sh(0, "sleep 10000 & echo $! > " + dir_.Path("pid") + "; wait")});
  const pid_t child = PidFrom("pid");
  const pid_t worker = group_->pids()[0];
  ASSERT_TRUE(RunUntilState(worker, 'S') && RunUntilState(child, 'S'));
  ASSERT_TRUE(test::RunUntil(io_, [=] { return ReadState(child)->name == "sleep"; }));
  EXPECT_EQ(TreeOf(worker), (std::vector<pid_t>{worker, child}));
  const auto process = ReadEvidence(child);
  ASSERT_TRUE(process.has_value());
  EXPECT_EQ(process->parent, worker);
  ASSERT_EQ(process->threads.size(), 1u);
  EXPECT_EQ(process->threads[0].state, 'S');
  const std::string text = Format(*process);
  EXPECT_TRUE(text.starts_with("process " + std::to_string(child) + " (sleep), child of " +
                               std::to_string(worker) + ": S (sleeping)"))
      << text;
  // If the kernel shows it.
  if (!process->threads[0].syscall.empty()) {
    EXPECT_TRUE(StrContains(text, "system call clock_nanosleep")) << text;
  }
}

TEST_F(EvidenceTest, ShowsOpenSocketsOnce) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const auto process = ReadEvidence(::getpid());
  ASSERT_TRUE(process.has_value());
  const std::string line =
      "  socket LISTEN 127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "\n";
  EXPECT_TRUE(StrContains(Format(*process), line)) << Format(*process);
  ::close(listener);
}

TEST_F(EvidenceTest, ListsOfThreadsAreCut) {
  ProcessEvidence process{.pid = 7, .parent = 1, .tracer = 9};
  for (int i = 0; i < 200; ++i) process.threads.push_back({.id = 7 + i, .name = "t", .state = 'D'});
  const std::string text = Format(process);
  EXPECT_TRUE(StrContains(text, "traced by process 9")) << text;
  EXPECT_TRUE(StrContains(text, "  and 72 more\n")) << text;
}

TEST_F(EvidenceTest, OneFileForEachRank) {
  Start({Sleeper(0), Sleeper(1), Sleeper(2)});
  Collect({.directory = dir_.Path("evidence"), .command = Command("echo stacks of {pid}")});
  ASSERT_TRUE(RunUntilCollected());
  ASSERT_EQ(evidence_.size(), 3u);
  for (int rank = 0; rank < 3; ++rank) {
    const Evidence& evidence = evidence_[static_cast<std::size_t>(rank)];
    const std::string pid = std::to_string(group_->pids()[static_cast<std::size_t>(rank)]);
    EXPECT_EQ(evidence.rank, rank);
    EXPECT_EQ(evidence.file, dir_.Path("evidence/evidence_rank" + std::to_string(rank) + ".txt"));
    EXPECT_EQ(ReadAll(evidence.file), evidence.text);
    EXPECT_TRUE(evidence.text.starts_with("rank " + std::to_string(rank) +
                                          " gave no sign of life\n\nprocess " + pid + " ("))
        << evidence.text;
    EXPECT_TRUE(evidence.text.ends_with("\nstacks of process " + pid + ":\n$ echo stacks of " +
                                        pid + "\nstacks of " + pid + "\n"))
        << evidence.text;
  }
  EXPECT_EQ(commands_.size(), 3u);
  EXPECT_EQ(group_->running(), 3) << "whose commands were told apart from the workers' processes";
}

TEST_F(EvidenceTest, ACommandThatHangsIsKilledAndTheOthersGoOn) {
  Start({Sleeper(0), Sleeper(1)});
  // Rank 0's command prints, and hangs.
  const std::string script =
      "echo begun; test {pid} != " + std::to_string(group_->pids()[0]) + " || exec sleep 10000";
  Collect({.command = Command("sh -c '" + script + "'"),
           .command_limit = std::chrono::milliseconds(300)});
  ASSERT_TRUE(RunUntilCollected());
  EXPECT_TRUE(evidence_[0].text.ends_with("begun\n(sh took too long and was killed)\n"))
      << evidence_[0].text;
  EXPECT_TRUE(evidence_[1].text.ends_with("\nbegun\n")) << evidence_[1].text;
  EXPECT_TRUE(evidence_[0].file.empty() && evidence_[0].problem.empty()) << "none was asked for";
}

TEST_F(EvidenceTest, AllTogetherHaveALimitToo) {
  Start({Sleeper(0), Sleeper(1), Sleeper(2)});
  Collect({.command = Command("sh -c 'exec sleep 10000' {pid}"),
           .total_limit = std::chrono::milliseconds(200),
           .ranks_at_a_time = 1});
  ASSERT_TRUE(RunUntilCollected());
  EXPECT_TRUE(evidence_[0].text.ends_with("(sh took too long and was killed)\n"));
  for (const std::size_t rank : {1, 2}) {
    EXPECT_TRUE(evidence_[rank].text.ends_with("(none: no time was left)\n"))
        << evidence_[rank].text;
    EXPECT_TRUE(StrContains(evidence_[rank].text, "(sleep), child of")) << "/proc was read before";
  }
}

TEST_F(EvidenceTest, OutputIsCutAndAnErrorIsNamed) {
  Start({Sleeper(0)});
  Collect({.command = Command("sh -c 'head -c 5000 /dev/zero | tr \"\\0\" x; exit 3' {pid}"),
           .output_limit = 1000});
  ASSERT_TRUE(RunUntilCollected());
  EXPECT_TRUE(evidence_[0].text.ends_with(
      std::string(1000, 'x') + "\n(the rest of the output is left out)\n(sh exited with code 3)\n"))
      << evidence_[0].text;
}

TEST_F(EvidenceTest, ACommandThatIsNotThereIsNamed) {
  Start({Sleeper(0)});
  Collect({.command = Command("no-such-debugger {pid}")});
  ASSERT_TRUE(RunUntilCollected());
  EXPECT_TRUE(StrContains(evidence_[0].text, "(none: no-such-debugger: ")) << evidence_[0].text;
}

TEST_F(EvidenceTest, ADirectoryThatTakesNothingIsNamed) {
  Start({Sleeper(0)});
  const std::string file = dir_.Write("file", "");
  Collect({.directory = file, .command = Command("true {pid}")});
  ASSERT_TRUE(RunUntilCollected());
  EXPECT_TRUE(evidence_[0].file.empty());
  EXPECT_TRUE(StrContains(evidence_[0].problem, file)) << evidence_[0].problem;
  EXPECT_FALSE(evidence_[0].text.empty());
}

TEST_F(EvidenceTest, AWorkerThatIsGoneHasNothingToShow) {
  Start({Sleeper(0)});
  run_ = std::make_unique<EvidenceRun>(
      io_, EvidenceOptions{}, std::vector<EvidenceTarget>{{.rank = 5, .pid = 1 << 30, .why = "x"}},
      [this](std::vector<Evidence> evidence) {
        evidence_ = std::move(evidence);
        done_ = true;
      });
  ASSERT_TRUE(RunUntilCollected());
  EXPECT_EQ(evidence_[0].text, "rank 5 x\n\nprocess 1073741824 is gone\n");
}

TEST_F(EvidenceTest, MayBeGivenUp) {
  Start({Sleeper(0)});
  Collect({.command = Command("sleep 10000 {pid}")});
  ASSERT_TRUE(test::RunUntil(io_, [this] { return !commands_.empty(); }));
  run_.reset();
  EXPECT_FALSE(IsAlive(commands_[0]));
  io_.poll();
  EXPECT_FALSE(done_);
}

// The workers were stopped while gdb was running, and none of the evidence was written.
TEST_F(EvidenceTest, MayBeFinishedAtOnceWithWhatIsThere) {
  Start({Sleeper(0), Sleeper(1)});
  Collect({.directory = dir_.path(),
           .command = Command("sh -c 'sleep 10000 # {pid}'"),
           .ranks_at_a_time = 1});
  ASSERT_TRUE(test::RunUntil(io_, [this] { return commands_.size() == 1; }));
  const std::vector<Evidence> found = run_->FinishNow("the workers are being stopped");
  run_.reset();
  ASSERT_EQ(found.size(), 2u);
  for (const Evidence& one : found) {
    const std::string text = ReadAll(one.file);
    EXPECT_TRUE(StrContains(text, "gave no sign of life")) << text;
    EXPECT_TRUE(StrContains(text, "(sleep), child of ")) << text;
    EXPECT_TRUE(StrContains(text, "were not taken: the workers are being stopped")) << text;
  }
  EXPECT_TRUE(RunUntilDead(commands_[0]));
  EXPECT_FALSE(done_);
}

TEST_F(EvidenceTest, TheGroupMayEndMeanwhile) {
  Start({Sleeper(0)});
  Collect({.command = Command("sh -c 'echo begun; exec sleep 10000' {pid}"),
           .command_limit = std::chrono::milliseconds(500)});
  ASSERT_TRUE(test::RunUntil(io_, [this] { return !commands_.empty(); }));
  group_->Stop(StopLadder::Now());
  ASSERT_TRUE(RunUntilDone());
  EXPECT_TRUE(IsAlive(commands_[0])) << "it is none of the workers'";
  EXPECT_TRUE(warnings_.empty());
  ASSERT_TRUE(RunUntilCollected());
  EXPECT_TRUE(StrContains(evidence_[0].text, "took too long")) << evidence_[0].text;
}

// Sets PATH to this directory alone while the object lives.
class PathOf {
 public:
  explicit PathOf(const std::string& directory) : before_(::getenv("PATH")) {
    ::setenv("PATH", directory.c_str(), 1);
  }
  ~PathOf() { ::setenv("PATH", before_.c_str(), 1); }

 private:
  const std::string before_;
};

// "The evidence of our Python ranks was a page of the interpreter's own frames."
TEST_F(EvidenceTest, PySpyIsUsedForPythonProgramsAndAskedForWhereItIsMissing) {
  if (::access("/usr/bin/python3", X_OK) != 0) GTEST_SKIP() << "there is no /usr/bin/python3";
  Start({Sh(0, "exec /usr/bin/python3 -c 'import time; time.sleep(10000)'"), Sleeper(1)});
  ASSERT_TRUE(test::RunUntil(io_, [this] { return RunsPython(group_->pids()[0]); }));
  dir_.Write("gdb", "#!/bin/sh\necho frames of C\n", 0755);
  const PathOf path(dir_.path());
  Collect({});
  ASSERT_TRUE(RunUntilCollected());
  EXPECT_TRUE(StrContains(evidence_[0].text, "frames of C\n")) << evidence_[0].text;
  EXPECT_TRUE(StrContains(evidence_[0].text, "install py-spy")) << evidence_[0].text;
  EXPECT_FALSE(StrContains(evidence_[1].text, "py-spy")) << "it is a shell's sleep";

  dir_.Write("py-spy", "#!/bin/sh\necho lines of Python: $*\n", 0755);
  done_ = false;
  Collect({});
  ASSERT_TRUE(RunUntilCollected());
  EXPECT_TRUE(StrContains(evidence_[0].text, "lines of Python: dump --pid ")) << evidence_[0].text;
  EXPECT_FALSE(StrContains(evidence_[0].text, "install py-spy")) << evidence_[0].text;
}

// With the default command.
TEST_F(EvidenceTest, GdbShowsTheStacksOfAWorkerThatGoesOnAfterwards) {
  if (!IsInstalled("gdb")) GTEST_SKIP() << "gdb is not installed";
  Start({Sleeper(0)});
  const pid_t worker = group_->pids()[0];
  ASSERT_TRUE(RunUntilState(worker, 'S'));
  Collect({.command_limit = std::chrono::seconds(50), .total_limit = std::chrono::seconds(50)});
  ASSERT_TRUE(RunUntilCollected());
  const std::string& text = evidence_[0].text;
  EXPECT_TRUE(StrContains(text, "$ gdb -nx -p " + std::to_string(worker))) << text;
  if (StrContains(text, "ptrace: Operation not permitted")) {
    GTEST_SKIP() << "this machine lets nobody attach to a process";
  }
  EXPECT_TRUE(StrContains(text, "#0 ")) << text;
  EXPECT_TRUE(StrContains(text, "nanosleep")) << text;
  EXPECT_TRUE(RunUntilState(worker, 'S')) << "it is not left stopped";
  EXPECT_EQ(group_->running(), 1);
}

}  // namespace
}  // namespace muster::worker
