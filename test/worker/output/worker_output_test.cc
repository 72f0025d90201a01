// Where workers' output goes, with real processes.
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/worker/group_fixture.h"
#include "worker/output/lines.h"

namespace muster::worker {
namespace {

using std::chrono::milliseconds;

class WorkerOutputTest : public ReadGroupTest {};
class UnreadOutputTest : public GroupTest {};

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST_F(WorkerOutputTest, WithoutWishesTheWorkerWritesToTheConsoleItself) {
  struct stat ours;
  ASSERT_EQ(::fstat(out_.write_fd(), &ours), 0);
  WorkerSpec spec = Sh(0, "");
  spec.argv = {"stat", "-L", "-c", "%i", "/proc/self/fd/1"};
  Start({spec});
  ASSERT_TRUE(RunUntilOut("\n"));
  EXPECT_EQ(out_.text(), std::to_string(ours.st_ino) + "\n");
}

TEST_F(WorkerOutputTest, RedirectedOutputGoesToItsFileOnly) {
  WorkerSpec spec = Sh(0, "echo out; echo err >&2");
  spec.stdout_spec = {.file = dir_.Path("0/stdout.log"), .to_console = false};
  spec.stderr_spec = {.file = dir_.Path("0/stderr.log"), .to_console = false};
  ASSERT_TRUE(RunToEnd({spec}));
  EXPECT_EQ(ReadAll(spec.stdout_spec.file), "out\n");
  EXPECT_EQ(ReadAll(spec.stderr_spec.file), "err\n");
  EXPECT_EQ(out_.text() + err_.text(), "");
}

TEST_F(WorkerOutputTest, TeeGoesToFileAndConsoleAndOnlyTheConsoleHasPrefixes) {
  WorkerSpec spec = Sh(0, "echo one; echo two; echo oops >&2");
  spec.stdout_spec = {.file = dir_.Path("stdout.log"), .prefix = "[default0]:"};
  spec.stderr_spec = {.file = dir_.Path("stderr.log"), .prefix = "[default0]:"};
  ASSERT_TRUE(RunToEnd({spec}));
  EXPECT_TRUE(RunUntilOut("[default0]:one\n[default0]:two\n"));
  EXPECT_TRUE(test::RunUntil(io_, [&] { return err_.text() == "[default0]:oops\n"; }));
  EXPECT_EQ(ReadAll(spec.stdout_spec.file), "one\ntwo\n");
  EXPECT_EQ(ReadAll(spec.stderr_spec.file), "oops\n");
}

TEST_F(WorkerOutputTest, UnwantedOutputIsNotShown) {
  WorkerSpec spec = Sh(0, "where=$(readlink /proc/$$/fd/1); echo $where >&2");
  spec.stdout_spec = {.to_console = false};
  ASSERT_TRUE(RunToEnd({spec}));
  EXPECT_TRUE(test::RunUntil(io_, [&] { return err_.text() == "/dev/null\n"; }));
}

TEST_F(WorkerOutputTest, LinesOfSeveralWorkersNeverMix) {
  // Each line in three writes; rank 2 writes to the console directly.
  const std::string script =
      "i=0; while [ $i -lt 300 ]; do printf '%s-' $RANK; printf '%s-' $i; echo end; "
      "i=$((i+1)); done";
  WorkerSpec first = Sh(0, script);
  WorkerSpec second = Sh(1, script);
  first.stdout_spec.prefix = "[0]:";
  second.stdout_spec.prefix = "[1]:";
  Start({first, second, Sh(2, "i=0; while [ $i -lt 300 ]; do echo own; i=$((i+1)); done")});
  ASSERT_TRUE(RunUntilDone());
  ASSERT_TRUE(test::RunUntil(io_, [&] { return LinesOf(out_.text()).size() >= 900; }));
  std::set<std::string> expected = {"own"};
  for (int i = 0; i < 300; ++i) {
    expected.insert("[0]:0-" + std::to_string(i) + "-end");
    expected.insert("[1]:1-" + std::to_string(i) + "-end");
  }
  for (const std::string& line : LinesOf(out_.text())) EXPECT_EQ(expected.count(line), 1u) << line;
}

TEST_F(WorkerOutputTest, WithoutAPrefixBytesPassAtOnce) {
  WorkerSpec spec = Sh(0, "printf 'no newline yet'; sleep 10000");
  spec.stdout_spec.keep_tail = true;
  Start({spec});
  ASSERT_TRUE(RunUntilOut("no newline yet"));
  EXPECT_EQ(group_->running(), 1);
}

TEST_F(WorkerOutputTest, UnterminatedLastLineIsShownAtTheEnd) {
  WorkerSpec spec = Sh(0, "printf 'last words'");
  spec.stdout_spec.prefix = "[0]:";
  ASSERT_TRUE(RunToEnd({spec}));
  EXPECT_TRUE(RunUntilOut("[0]:last words\n"));
}

// "(Pdb) is shown only after I have typed the answer, so the run looks hung."
TEST_F(WorkerOutputTest, PromptIsShownThoughItsLineHasNoEnd) {
  const std::string go = dir_.Path("go");
  WorkerSpec spec =
      Sh(0, "printf 'one\\n(Pdb) '; until [ -e " + go + " ]; do sleep 0.02; done; echo over");
  spec.stdout_spec.prefix = "[0]:";
  Start({spec});
  ASSERT_TRUE(RunUntilOut("[0]:one\n[0]:(Pdb) "));
  EXPECT_EQ(group_->running(), 1);
  dir_.Write("go", "");
  ASSERT_TRUE(RunUntilDone());
  ASSERT_TRUE(RunUntilOut("over\n"));
  EXPECT_EQ(out_.text(), "[0]:one\n[0]:(Pdb) over\n");
}

TEST_F(WorkerOutputTest, PromptThatAnotherWorkerInterruptsIsShownAgain) {
  const std::string go = dir_.Path("go");
  const std::string end = dir_.Path("end");
  WorkerSpec asks = Sh(0, "printf '(Pdb) '; until [ -e " + end + " ]; do sleep 0.02; done; echo x");
  WorkerSpec talks =
      Sh(1, "until [ -e " + go + " ]; do sleep 0.02; done; echo hello; touch " + end);
  asks.stdout_spec.prefix = "[0]:";
  talks.stdout_spec.prefix = "[1]:";
  Start({asks, talks});
  ASSERT_TRUE(RunUntilOut("[0]:(Pdb) "));
  dir_.Write("go", "");
  ASSERT_TRUE(RunUntilDone());
  ASSERT_TRUE(RunUntilOut("[0]:(Pdb) x\n"));
  EXPECT_EQ(out_.text(), "[0]:(Pdb) \n[1]:hello\n[0]:(Pdb) x\n");
}

// "The run looked hung: rank 1 sat in pdb, and its output went to a file."
TEST_F(WorkerOutputTest, RankAtAPromptThatIsNotShownIsNamedOnce) {
  const std::string file = dir_.Path("1/stdout.log");
  WorkerSpec spec =
      Sh(1, "printf '> train.py(3)\\n(Pdb) '; sleep 0.5; printf '1\\n(Pdb) '; sleep 0.5");
  spec.stdout_spec = {.file = file, .to_console = false};
  Start({spec, Sh(0, "printf 'no prompt: '; sleep 0.5")});
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(warnings_,
            std::vector<std::string>{
                "rank 1 waits at the prompt of a debugger, (Pdb), but its output is not shown here "
                "(it is in " +
                file +
                "): --tee shows what --redirects hides, and --local-ranks-filter=1 shows "
                "this rank"});
}

TEST_F(WorkerOutputTest, VeryLongLineArrivesWholeWithOnePrefix) {
  WorkerSpec spec = Sh(0, "head -c 300000 /dev/zero | tr '\\0' x; echo");
  spec.stdout_spec.prefix = "[0]:";
  Start({spec});
  ASSERT_TRUE(RunUntilOut("\n"));
  EXPECT_TRUE(out_.text() == "[0]:" + std::string(300000, 'x') + "\n") << out_.text().size();
}

TEST_F(WorkerOutputTest, ReportShowsTheLastLinesOfStderr) {
  WorkerSpec spec = Sh(0, "seq 5000 >&2; exit 3");
  spec.stderr_spec.keep_tail = true;
  ASSERT_TRUE(RunToEnd({spec}));
  const std::string& tail = failures_.at(0).stderr_tail;
  EXPECT_LE(tail.size(), kMaxTail);
  EXPECT_TRUE(tail.ends_with("\n4999\n5000\n"));
  EXPECT_EQ(failures_[0].log_path, "");
}

TEST_F(WorkerOutputTest, ReportShowsTheEndOfARedirectedStderrFromThisRunOnly) {
  WorkerSpec spec = Sh(0, "echo new >&2; exit 3");
  spec.stderr_spec = {.file = dir_.Write("stderr.log", "old\n"), .to_console = false};
  ASSERT_TRUE(RunToEnd({spec}));
  EXPECT_EQ(failures_.at(0).stderr_tail, "new\n");
  EXPECT_EQ(failures_[0].log_path, spec.stderr_spec.file);
}

TEST_F(WorkerOutputTest, FullDiskUnderALogFileStopsNobody) {
  WorkerSpec first = Sh(0, "echo one; echo two; echo three");
  WorkerSpec second = Sh(1, "echo four");
  first.stdout_spec = {.file = "/dev/full", .prefix = "[0]:"};
  second.stdout_spec = {.file = "/dev/full", .to_console = false};
  ASSERT_TRUE(RunToEnd({first, second}));
  EXPECT_EQ(results_[0].end, GroupEnd::kSucceeded);
  EXPECT_EQ(results_[0].log_bytes_dropped, 19u);
  EXPECT_TRUE(RunUntilOut("[0]:three\n")) << "the console still gets it";
  ASSERT_EQ(warnings_.size(), 2u) << "once for all";
  EXPECT_TRUE(
      warnings_[0].ends_with("write /dev/full: No space left on device; output is being lost"));
  std::sort(lost_.begin(), lost_.end());
  EXPECT_EQ(lost_, (std::vector<std::string>{"0: write /dev/full: No space left on device",
                                             "1: write /dev/full: No space left on device"}))
      << "and of each rank for those who look at it";
  EXPECT_EQ(warnings_[1], "could not write to log files: 19 bytes of the output of rank 0, 1");
}

// "The disk with the logs was full, print() failed, and a training of a week was over."
TEST_F(WorkerOutputTest, WorkerWhoseOutputIsRedirectedNeverSeesTheFullDisk) {
  WorkerSpec spec = Sh(0, "");
  spec.argv = {"python3", "-c", "print('x' * 100000, flush=True)"};
  spec.stdout_spec = {.file = "/dev/full", .to_console = false};
  ASSERT_TRUE(RunToEnd({spec}));
  EXPECT_EQ(results_[0].end, GroupEnd::kSucceeded);
  EXPECT_EQ(results_[0].log_bytes_dropped, 100001u);
}

TEST_F(WorkerOutputTest, PrefixMayHoldThePid) {
  WorkerSpec spec = Sh(0, "echo $$");
  spec.stdout_spec.prefix = "${pid}=";
  Start({spec});
  const std::string pid = std::to_string(group_->pids()[0]);
  EXPECT_TRUE(RunUntilOut(pid + "=" + pid + "\n"));
}

TEST_F(WorkerOutputTest, PrefixMayHoldTheTimeAtWhichALineEnded) {
  WorkerSpec spec = Sh(0, "echo hello");
  spec.stdout_spec.prefix = "${time}|";
  Start({spec});
  ASSERT_TRUE(RunUntilOut("\n"));
  EXPECT_THAT(out_.text(), testing::MatchesRegex(
                               "[0-9][0-9]:[0-9][0-9]:[0-9][0-9]\\.[0-9][0-9][0-9]\\|hello\n"));
}

TEST_F(WorkerOutputTest, LinesThatMatchAFilterAreCopiedIntoOneFileForAll) {
  std::vector<WorkerSpec> specs;
  for (int rank = 0; rank < 4; ++rank) {
    WorkerSpec spec = Sh(rank,
                         "i=0; while [ $i -lt 100 ]; do echo step $i; printf loss; echo \" $i\";"
                         " i=$((i+1)); done; printf 'last loss'");
    const std::string number = std::to_string(rank);
    spec.stdout_spec = {.file = dir_.Path(number + ".log"),
                        .to_console = false,
                        .prefix = "[" + number + "]:",
                        .filtered_file = dir_.Path("filtered.log"),
                        .filters = {"nothing", "loss"}};
    specs.push_back(spec);
  }
  Start(std::move(specs));
  ASSERT_TRUE(RunUntilDone());
  std::multiset<std::string> expected;
  for (int rank = 0; rank < 4; ++rank) {
    const std::string prefix = "[" + std::to_string(rank) + "]:";
    for (int i = 0; i < 100; ++i) expected.insert(prefix + "loss " + std::to_string(i));
    expected.insert(prefix + "last loss");
  }
  const std::vector<std::string> lines = LinesOf(ReadAll(dir_.Path("filtered.log")));
  EXPECT_EQ(std::multiset<std::string>(lines.begin(), lines.end()), expected);
  EXPECT_EQ(LinesOf(ReadAll(dir_.Path("0.log"))).size(), 201u) << "the log itself has all of them";
  EXPECT_EQ(out_.text(), "");
}

TEST_F(WorkerOutputTest, ClosedConsoleStopsNobody) {
  out_.CloseReadEnd();
  WorkerSpec spec = Sh(0, "seq 100000");
  spec.stdout_spec = {.file = dir_.Path("stdout.log"), .prefix = "[0]:"};
  ASSERT_TRUE(RunToEnd({spec}));
  EXPECT_EQ(results_[0].end, GroupEnd::kSucceeded);
  EXPECT_TRUE(ReadAll(spec.stdout_spec.file).ends_with("\n99999\n100000\n"));
  EXPECT_EQ(warnings_, std::vector<std::string>{"write stdout: Broken pipe; output is being lost"});
}

TEST_F(UnreadOutputTest, ConsoleThatNobodyReadsMakesTheWorkerWaitAndLosesNothing) {
  constexpr std::size_t kTotal = 8 * 1024 * 1024;
  WorkerSpec spec = Sh(0, "head -c " + std::to_string(kTotal) + " /dev/zero");
  spec.stdout_spec.keep_tail = true;
  Start({spec});
  ConsoleSink& sink = console_.sink(StreamKind::kStdout);
  ASSERT_TRUE(test::RunUntil(io_, [&] { return !sink.HasRoom(); }));
  // No more is read from the worker after the read that filled the buffer.
  constexpr std::size_t kBound = ConsoleSink::kRoom + 64 * 1024;
  EXPECT_FALSE(test::RunUntil(
      io_, [&] { return sink.pending_size() > kBound; }, milliseconds(200)));
  EXPECT_EQ(group_->running(), 1);
  out_.Read();
  ASSERT_TRUE(test::RunUntil(io_, [&] { return out_.text().size() >= kTotal; }));
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(out_.text().size(), kTotal);
}

TEST_F(UnreadOutputTest, GroupEndsThoughNobodyReadsTheConsole) {
  WorkerSpec chatty = Sh(0, "while :; do echo chatter; done");
  chatty.stdout_spec.prefix = "[0]:";
  Start({chatty, Sleeper(1)});
  ASSERT_TRUE(test::RunUntil(io_, [&] { return !console_.sink(StreamKind::kStdout).HasRoom(); }));
  ::kill(group_->pids()[1], SIGABRT);
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(failures_.at(0).rank, 1);
}

// "The last lines of my checkpoint were lost, as the shell around my python had exited already."
TEST_F(WorkerOutputTest, WhatAWorkerHasLeftBehindCanStillWrite) {
  const std::string go = dir_.Path("go");
  WorkerSpec spec = Sh(0, "setsid sh -c 'while [ ! -e " + go +
                              " ]; do sleep 0.01; done; echo late words' & printf 'last words'");
  spec.stdout_spec = {.file = dir_.Path("stdout.log"), .prefix = "[0]:"};
  leftovers_ = LeftoverPolicy::kWait;
  Start({spec}, {.grace = std::chrono::hours(1)});
  ASSERT_TRUE(test::RunUntil(io_, [&] { return group_->running() == 0; }));
  dir_.Write("go", "");
  ASSERT_TRUE(RunUntilDone());
  EXPECT_TRUE(RunUntilOut("[0]:last wordslate words\n"));
  EXPECT_EQ(ReadAll(spec.stdout_spec.file), "last wordslate words\n");
}

}  // namespace
}  // namespace muster::worker
