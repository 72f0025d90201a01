// One worker fails: what the user reads, the agent's exit code, and that nothing is left behind.
#include <csignal>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"
#include "test/support/process_scan.h"

namespace muster::test {
namespace {

class WorkerFailureTest : public E2eTest {
 protected:
  // What an agent did whose worker failed.
  struct Failure {
    int exit_code = 0;
    std::string report;
  };

  Failure Run(std::vector<std::string> flags, const std::vector<std::string>& program) {
    flags.insert(flags.begin(), "--standalone");
    flags.insert(flags.end(), program.begin(), program.end());
    Command agent = StartMuster(flags);
    const int exit_code = agent.Wait().value_or(-1000);
    EXPECT_EQ(agent.out(), "");
    return {exit_code, agent.err()};
  }

  // Runs the program with both exit code policies: 1 as torchrun has it, and the worker's own.
  // Returns the report, which does not depend on it.
  std::string ExpectExitCodes(int of_worker, const std::vector<std::string>& program) {
    EXPECT_EQ(Run({}, program).exit_code, 1);
    const Failure failure = Run({"--exit-code=worker"}, program);
    EXPECT_EQ(failure.exit_code, of_worker) << failure.report;
    return failure.report;
  }
};

TEST_F(WorkerFailureTest, WorkerExitsWithThree) {
  const std::string report =
      ExpectExitCodes(3, {"--no-python", "sh", "-c", "echo no data >&2; exit 3"});
  EXPECT_TRUE(Contains(report, "sh FAILED"));
  EXPECT_EQ(ReportField(report, "rank"), "0 (local_rank: 0)");
  EXPECT_TRUE(ReportField(report, "exitcode").starts_with("3 (pid: ")) << report;
  EXPECT_EQ(ReportField(report, "reason"), "exited with code 3");
}

TEST_F(WorkerFailureTest, WorkerIsKilledBySegmentationFault) {
  const std::string report =
      ExpectExitCodes(128 + SIGSEGV, {"--no-python", "sh", "-c", "ulimit -c 0; kill -SEGV $$"});
  EXPECT_TRUE(ReportField(report, "exitcode").starts_with("-11 (pid: ")) << report;
  EXPECT_EQ(ReportField(report, "reason"), "was killed by SIGSEGV");
}

TEST_F(WorkerFailureTest, TextFileWithoutInterpreterCannotBeStarted) {
  const std::string text = Write("text", "just words\n", 0755);
  const std::string report = ExpectExitCodes(126, {"--no-python", text});
  EXPECT_EQ(ReportField(report, "exitcode"), "126 (never started)");
  EXPECT_TRUE(Contains(ReportField(report, "reason"), "could not be started: " + text));
  EXPECT_TRUE(Contains(ReportField(report, "reason"), "Exec format error"));
}

TEST_F(WorkerFailureTest, InterpreterOfAScriptDoesNotExist) {
  const std::string script = Write("script", "#!/no/such/interpreter\n", 0755);
  const std::string report = ExpectExitCodes(127, {"--no-python", script});
  EXPECT_EQ(ReportField(report, "exitcode"), "127 (never started)");
  EXPECT_TRUE(Contains(ReportField(report, "reason"), script));
}

// A program that nothing can be done with is the user's mistake: one sentence, before any node is
// waited for.
TEST_F(WorkerFailureTest, ProgramThatCannotBeRunIsAUsageError) {
  const std::string plain = Write("plain", "echo\n", 0644);
  const std::vector<std::vector<std::string>> table = {
      {"/no/such/program", "no such file"},
      {"no-such-command", "no such command in PATH"},
      {plain, "it is not executable; chmod +x it, or drop --no-python for a script"},
      {Path(""), "is a directory"},
  };
  for (const auto& row : table) {
    for (const char* policy : {"--exit-code=torchrun", "--exit-code=worker"}) {
      const Failure failure = Run({policy}, {"--no-python", row[0]});
      EXPECT_EQ(failure.exit_code, 2);
      EXPECT_EQ(failure.report, "muster run: cannot run '" + row[0] + "': " + row[1] + "\n");
    }
  }
}

TEST_F(WorkerFailureTest, SiblingsAreStoppedAndNotBlamed) {
  const Failure failure = Run({"--nproc-per-node=3"},
                              {"--no-python", "sh", "-c", "test $RANK = 1 && exit 9; sleep 10000"});
  EXPECT_EQ(failure.exit_code, 1);
  EXPECT_EQ(ReportField(failure.report, "rank"), "1 (local_rank: 1)");
  EXPECT_TRUE(ReportField(failure.report, "exitcode").starts_with("9 ")) << failure.report;
}

TEST_F(WorkerFailureTest, SiblingThatIgnoresSigtermIsKilledAfterTheShutdownTimeout) {
  // The failure comes once its sibling is ready to ignore the signal.
  const std::string script = "if test $RANK = 1; then trap '' TERM; touch " + Path("ready") +
                             "; while :; do sleep 1; done; fi; while ! test -e " + Path("ready") +
                             "; do sleep 0.01; done; exit 5";
  const Failure failure = Run({"--nproc-per-node=2", "--shutdown-timeout=1", "--exit-code=worker"},
                              {"--no-python", "sh", "-c", script});
  EXPECT_EQ(failure.exit_code, 5);
  EXPECT_EQ(ReportField(failure.report, "rank"), "0 (local_rank: 0)");
}

TEST_F(WorkerFailureTest, ReportShowsTheLastLinesOfAStderrThatWentToAFile) {
  const Failure failure =
      Run({"-r", "3", "--log-dir=" + Path("logs")},
          {"--no-python", "sh", "-c", "echo Traceback: out of memory >&2; exit 1"});
  EXPECT_EQ(failure.exit_code, 1);
  EXPECT_TRUE(Contains(failure.report, "    Traceback: out of memory\n"));
  EXPECT_TRUE(ReportField(failure.report, "log").ends_with("/0/stderr.log")) << failure.report;
}

}  // namespace
}  // namespace muster::test
