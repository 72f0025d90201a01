#include "launcher/views/report.h"

#include <csignal>

#include <gtest/gtest.h>

namespace muster::launcher {
namespace {

using rendezvous::Verdict;
using rendezvous::VerdictKind;
using rendezvous::WorkerFailure;

ReportContext Context() {
  ReportContext context;
  context.program = "train.py";
  context.node_id = "node0-17-x3k2p9";
  context.now = absl::FromUnixSeconds(1700000000);
  context.zone = absl::UTCTimeZone();
  context.elapsed = std::chrono::milliseconds(12000);
  return context;
}

Verdict Failed(WorkerFailure failure) {
  Verdict verdict;
  verdict.kind = VerdictKind::kWorkerFailed;
  verdict.sentence = "rank 1 failed";
  verdict.root_cause = std::move(failure);
  verdict.rounds = 2;
  verdict.restarts = 1;
  return verdict;
}

WorkerFailure ExitedWith3() {
  return {.rank = 1,
          .local_rank = 1,
          .node_id = "node0-17-x3k2p9",
          .host = "node0",
          .pid = 18678,
          .exit_code = 3,
          .signal = 0,
          .what = "exited with code 3",
          .stderr_tail = "loading\nValueError: no such layer\n",
          .log_path = "/logs/1/stderr.log",
          .error_file = ""};
}

// The beginning of a report without other failures.
const std::string kOneFailed = R"(============================================================
train.py FAILED
after 12 s, 2 rounds, 1 restart
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
)";

TEST(ReportTest, WorkerThatExitedIsShownWithItsLastWords) {
  EXPECT_EQ(FormatReport(Failed(ExitedWith3()), Context()),
            kOneFailed + R"(  time      : 2023-11-14_22:13:20
  host      : node0 (this node)
  rank      : 1 (local_rank: 1)
  exitcode  : 3 (pid: 18678)
  reason    : exited with code 3
  error_file: <N/A>
  log       : /logs/1/stderr.log
  last lines of its stderr:
    loading
    ValueError: no such layer
============================================================
)");
}

TEST(ReportTest, WorkerThatWasKilledOnAnotherNodeIsShownWithTheSignalsName) {
  WorkerFailure failure = ExitedWith3();
  failure.node_id = "node7-17-q8s5t2";
  failure.host = "node7";
  failure.signal = SIGSEGV;
  failure.what = "was killed by SIGSEGV (core dumped)";
  failure.stderr_tail = "";
  failure.log_path = "";
  failure.operations = "rank 0 waits in all-reduce 8 (fc)\x1b[2J for 3 s; rank 1 left all-reduce 7";
  EXPECT_EQ(FormatReport(Failed(failure), Context()),
            kOneFailed + R"(  time      : 2023-11-14_22:13:20
  host      : node7
  rank      : 1 (local_rank: 1)
  exitcode  : -11 (pid: 18678)
  reason    : was killed by SIGSEGV (core dumped)
  operations: rank 0 waits in all-reduce 8 (fc)^[[2J for 3 s; rank 1 left all-reduce 7
  error_file: <N/A>
============================================================
)");
}

// "Two containers had one host name, and the reports of both said that the rank was theirs."
TEST(ReportTest, NodeWithTheSameHostNameIsAnother) {
  ReportContext context = Context();
  EXPECT_NE(FormatReport(Failed(ExitedWith3()), context).find("node0 (this node)"),
            std::string::npos);
  context.node_id = "node0-17-m4n6b1";
  EXPECT_EQ(FormatReport(Failed(ExitedWith3()), context).find("(this node)"), std::string::npos);
}

// "RuntimeError: first linesecond line" was what the report said.
TEST(ReportTest, MessageOfManyLinesIsShownInLines) {
  WorkerFailure failure = ExitedWith3();
  failure.error_message = "RuntimeError: first\nsecond\n\x1b[31mthird";
  std::string report = FormatReport(Failed(failure), Context());
  EXPECT_NE(report.find("  message   : RuntimeError: first\n              second\n"
                        "              third\n"),
            std::string::npos)
      << report;
  failure.error_message = "1";
  for (int line = 2; line <= 30; ++line) failure.error_message += "\n" + std::to_string(line);
  report = FormatReport(Failed(failure), Context());
  EXPECT_NE(report.find("\n              20\n              (10 more lines)\n"), std::string::npos)
      << report;
}

TEST(ReportTest, ErrorFileBringsMessageTracebackAndTime) {
  WorkerFailure failure = ExitedWith3();
  failure.error_message = "ValueError: no such layer";
  failure.error_traceback = "Traceback:\n  File \"x.py\"\n";
  failure.error_time = 1600000000;
  failure.error_file = "/logs/1/error.json";
  failure.stderr_tail = "";
  EXPECT_EQ(FormatReport(Failed(failure), Context()),
            kOneFailed + R"(  time      : 2020-09-13_12:26:40
  host      : node0 (this node)
  rank      : 1 (local_rank: 1)
  exitcode  : 3 (pid: 18678)
  reason    : exited with code 3
  error_file: /logs/1/error.json
  log       : /logs/1/stderr.log
  message   : ValueError: no such layer
  traceback :
    Traceback:
      File "x.py"
============================================================
)");
}

TEST(ReportTest, LaterFailuresOfThisNodeComeFirstAndTheRootCauseLast) {
  ReportContext context = Context();
  WorkerFailure later = ExitedWith3();
  later.rank = later.local_rank = 2;
  later.pid = 18680;
  later.what = "exited with code 3 a moment later";
  context.others = {later};
  const std::string report = FormatReport(Failed(ExitedWith3()), context);
  EXPECT_NE(report.find("Failures:\n[1]:\n  time      : 2023-11-14_22:13:20\n"), std::string::npos);
  EXPECT_NE(report.find("  rank      : 2 (local_rank: 2)\n  exitcode  : 3 (pid: 18680)\n"),
            std::string::npos)
      << report;
  EXPECT_EQ(report.find("<NO_OTHER_FAILURES>"), std::string::npos);
  EXPECT_LT(report.find("rank      : 2"), report.find("Root Cause"));
}

// "All 512 ranks of the node failed, and the first of them was 6,000 lines above."
TEST(ReportTest, OfManyLaterFailuresAFewAreShownAndTheOthersCounted) {
  ReportContext context = Context();
  context.others.assign(511, ExitedWith3());
  const std::string report = FormatReport(Failed(ExitedWith3()), context);
  EXPECT_NE(report.find("[16]:\n"), std::string::npos);
  EXPECT_EQ(report.find("[17]:\n"), std::string::npos);
  EXPECT_NE(report.find("  <495 MORE OF THIS NODE>\n"), std::string::npos);
  EXPECT_LT(report.size(), 8000u);
}

TEST(ReportTest, WorkerThatNeverStartedHasNoPid) {
  WorkerFailure failure = ExitedWith3();
  failure.pid = 0;
  failure.exit_code = 127;
  failure.what = "could not be started: ./train: No such file or directory";
  const std::string report = FormatReport(Failed(failure), Context());
  EXPECT_NE(report.find("  exitcode  : 127 (never started)\n"
                        "  reason    : could not be started: ./train: No such file or directory\n"),
            std::string::npos)
      << report;
}

TEST(ReportTest, LastLinesAreFewAndDoNotCommandTheTerminal) {
  WorkerFailure failure = ExitedWith3();
  failure.stderr_tail = "";
  for (int i = 1; i <= 30; ++i) failure.stderr_tail += "line " + std::to_string(i) + "\n";
  failure.stderr_tail += "10%\r20%\r30%\nred \x1b[31malert\x1b[0m\x07\twide\r\n\x1b]0;title";
  const std::string report = FormatReport(Failed(failure), Context());
  EXPECT_EQ(report.find("line 13\n"), std::string::npos);
  EXPECT_NE(report.find("    line 14\n"), std::string::npos);
  EXPECT_NE(report.find("    line 30\n    30%\n    red alert^G     wide\n    ^[]0;title\n"),
            std::string::npos)
      << report;
  EXPECT_EQ(report.find('\x1b'), std::string::npos);
}

TEST(ReportTest, SuccessIsSilentUnlessAskedFor) {
  Verdict verdict;
  verdict.rounds = 1;
  ReportContext context = Context();
  EXPECT_EQ(FormatReport(verdict, context), "");
  context.verbose = true;
  EXPECT_EQ(FormatReport(verdict, context), "train.py succeeded after 12 s, 1 round, 0 restarts\n");
}

// "Behind a good end stood a warning, 'restart after round 0', as if it were to begin again."
TEST(ReportTest, RestartsAreToldAsWhatHadHappenedByTheEnd) {
  ReportContext context = Context();
  context.restarts = {
      "round 0 ended: rank 1 exited with code 1; the workers of round 1 ran 10 ms "
      "later (stopped 2.1 ms)"};
  Verdict verdict;
  verdict.rounds = 2;
  verdict.restarts = 1;
  EXPECT_EQ(FormatReport(verdict, context),
            "train.py succeeded after 12 s, 2 rounds, 1 restart\n"
            "  round 0 ended: rank 1 exited with code 1; the workers of round 1 ran 10 ms later "
            "(stopped 2.1 ms)\n");
  // The failure first.
  EXPECT_NE(FormatReport(Failed(ExitedWith3()), context)
                .find("    ValueError: no such layer\n" + std::string(60, '-') +
                      "\nRestarts:\n  round 0 ended: "),
            std::string::npos);
  EXPECT_NE(FormatReport(Interrupted{SIGTERM}, context).find(" after 12 s\n  round 0 ended: "),
            std::string::npos);
}

TEST(ReportTest, EndsWithoutAFailedWorkerAreOneLine) {
  Verdict timeout;
  timeout.kind = VerdictKind::kJoinTimeout;
  timeout.sentence = "1 of 2 nodes joined in 600 s";
  EXPECT_EQ(FormatReport(timeout, Context()),
            "muster run: rendezvous failed: 1 of 2 nodes joined in 600 s\n");
  Verdict closed;
  closed.kind = VerdictKind::kClosed;
  closed.sentence = "the daemon was told to end";
  EXPECT_EQ(FormatReport(closed, Context()),
            "muster run: rendezvous closed: the daemon was told to end\n");
  EXPECT_EQ(
      FormatReport(RendezvousFailed{absl::UnavailableError("connect a:1: refused")}, Context()),
      "muster run: rendezvous failed: connect a:1: refused\n");
  // "The log disk was full, and Muster told me that the rendezvous had failed."
  EXPECT_EQ(
      FormatReport(NodeFailed{absl::UnavailableError("cannot create log directory /a: no space")},
                   Context()),
      "muster run: this node cannot run its workers: cannot create log directory /a: no "
      "space\n");
  EXPECT_EQ(FormatReport(Interrupted{SIGTERM}, Context()),
            "muster run: train.py was interrupted by SIGTERM after 12 s\n");
  EXPECT_EQ(FormatReport(LeftEarly{"Slurm drains it (bad fan)"}, Context()),
            "muster run: train.py goes on without this node after 12 s: Slurm drains it (bad "
            "fan)\n");
  Verdict lost;
  lost.kind = VerdictKind::kWorkerFailed;
  lost.sentence = "a worker failed on a node that is gone";
  EXPECT_EQ(FormatReport(lost, Context()),
            "muster run: train.py failed: a worker failed on a node that is gone\n");
}

TEST(ExitCodeTest, EachEndHasItsCode) {
  WorkerFailure killed = ExitedWith3();
  killed.signal = SIGKILL;
  WorkerFailure odd = ExitedWith3();
  odd.exit_code = 0;
  Verdict timeout;
  timeout.kind = VerdictKind::kJoinTimeout;
  Verdict closed;
  closed.kind = VerdictKind::kClosed;
  Verdict lost;
  lost.kind = VerdictKind::kWorkerFailed;
  const struct {
    const char* what;
    RunResult result;
    int torchrun;
    int worker;
  } cases[] = {
      {"success", Verdict{}, 0, 0},
      {"exited with 3", Failed(ExitedWith3()), 1, 3},
      {"killed", Failed(killed), 1, 128 + SIGKILL},
      {"failure with code 0", Failed(odd), 1, 1},
      {"failure without a cause", lost, 1, 1},
      {"join timeout", timeout, 3, 3},
      {"closed", closed, 3, 3},
      {"rendezvous failed", RendezvousFailed{absl::UnavailableError("x")}, 3, 3},
      {"node failed", NodeFailed{absl::UnavailableError("x")}, 4, 4},
      {"interrupted", Interrupted{SIGINT}, 130, 130},
      {"left early", LeftEarly{"Slurm drains it"}, 0, 0},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(ExitCodeFor(c.result, ExitCodePolicy::kTorchrun), c.torchrun) << c.what;
    EXPECT_EQ(ExitCodeFor(c.result, ExitCodePolicy::kWorker), c.worker) << c.what;
  }
}

}  // namespace
}  // namespace muster::launcher
