// `muster replay` of logs that real runs have just written.
#include <csignal>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "launcher/replay/event_file.h"
#include "test/e2e/e2e_fixture.h"
#include "test/support/temp_dir.h"

namespace muster::test {
namespace {

class ReplayTest : public E2eTest {
 protected:
  struct Result {
    std::optional<int> code;
    std::string out;
    std::string err;
  };

  Result Replay(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {MusterPath(), "replay"});
    Command command(std::move(arguments), {mark()});
    const std::optional<int> code = command.Wait();
    return {code, command.out(), command.err()};
  }

  // Each line of the log matches the schema.
  void ExpectSchema(const std::string& name) const {
    for (const std::string& line : Lines(ReadAll(Path(name)))) {
      const absl::Status status =
          launcher::CheckEventLine(base::ParseJson(line), launcher::MoreFields::kRefused);
      EXPECT_TRUE(status.ok()) << name << ": " << status << " " << line;
    }
  }

  std::vector<std::string> FlagsOf(const HeldPort& port, const std::string& log) const {
    return {"--nnodes=2",
            "--nproc-per-node=2",
            "--max-restarts=1",
            "--rdzv-id=job7",
            "--rdzv-endpoint=" + port.endpoint(),
            "--event-log=" + Path(log)};
  }
};

TEST_F(ReplayTest, WorkerThatFailsOnOneOfTwoNodes) {
  const HeldPort port;
  const std::string script = "[ $RANK = 3 ] && [ $TORCHELASTIC_RESTART_COUNT = 0 ] && exit 7; :";
  Command one = StartAgent(FlagsOf(port, "one"), script);
  Command other = StartAgent(FlagsOf(port, "other"), script);
  EXPECT_EQ(one.Wait(), 0) << one.err();
  EXPECT_EQ(other.Wait(), 0) << other.err();
  ExpectSchema("one");
  ExpectSchema("other");

  const Result told = Replay(
      {Path("one"), Path("other"), "--html", Path("page.html"), "--trace=" + Path("trace.json")});
  EXPECT_EQ(told.code, 0) << told.err;
  EXPECT_EQ(told.err, "");
  EXPECT_TRUE(Contains(told.out, "job job7: 2 rounds, 2 nodes, 4 ranks, "));
  EXPECT_TRUE(
      Contains(told.out, "job 'job7' succeeded: 4 workers on 2 nodes, 2 rounds, 1 restart"));
  EXPECT_TRUE(Contains(told.out, " exited with code 7 (restart 1 of 1)\n"));
  EXPECT_TRUE(Contains(told.out, "\n0 to 1 "));
  // Neither of loopback's two nodes is missing, shifted or killed.
  EXPECT_EQ(told.out.find("note:"), std::string::npos) << told.out;

  const std::string page = ReadAll(Path("page.html"));
  EXPECT_TRUE(Contains(page, "exited with code 7 (restart 1 of 1)</td>"));
  EXPECT_TRUE(Contains(page, "\"failed\":[[1,3]]"));
  const base::Json trace = base::ParseJson(ReadAll(Path("trace.json")));
  ASSERT_TRUE(trace.contains("traceEvents"));
  EXPECT_GT(trace["traceEvents"].size(), 20u);
}

// A killed node leaves a log without an end, and the others' logs say what happened to it.
TEST_F(ReplayTest, NodeThatIsKilled) {
  const Daemon daemon = StartDaemon();
  const std::string script = "echo up; while [ ! -e " + Path("done") + " ]; do sleep 0.05; done";
  const auto start = [&](const std::string& log) {
    return StartAgent({"--nnodes=1:2", "--rdzv-id=job7", "--rdzv-conf=last_call_timeout=20",
                       "--rdzv-endpoint=" + daemon.endpoint, "--event-log=" + Path(log)},
                      script);
  };
  Command stays = start("stays");
  Command killed = start("killed");
  ASSERT_TRUE(stays.WaitForOut("up")) << stays.err();
  ASSERT_TRUE(killed.WaitForOut("up")) << killed.err();
  killed.Signal(SIGKILL);
  EXPECT_EQ(killed.Wait(), -SIGKILL);
  ASSERT_TRUE(stays.WaitForOut("up\nup")) << stays.err();
  Write("done", "");
  EXPECT_EQ(stays.Wait(), 0) << stays.err();
  ExpectSchema("stays");
  ExpectSchema("killed");

  const Result told = Replay({Path("stays"), Path("killed")});
  EXPECT_EQ(told.code, 0) << told.err;
  EXPECT_TRUE(Contains(told.out, "was lost"));
  EXPECT_TRUE(Contains(told.out,
                       "note: the logs of these nodes end in the middle of a round, as happens "
                       "when a node is killed: "));

  const Result half = Replay({Path("stays")});
  EXPECT_EQ(half.code, 0) << half.err;
  EXPECT_TRUE(Contains(half.out, "note: the logs of some nodes are missing"));
}

TEST_F(ReplayTest, MistakesAreOneSentence) {
  const auto expect = [&](std::vector<std::string> arguments, const std::string& sentence) {
    const Result result = Replay(std::move(arguments));
    EXPECT_EQ(result.code, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err, "muster replay: " + sentence + "\n");
  };
  expect({"/no/such/file"}, "read the event log /no/such/file: No such file or directory");
  const std::string newer = Write("newer", R"({"event":"log_opened","version":2,"muster":"9.0.0"})"
                                           "\n");
  expect({newer}, "read the event log " + newer +
                      ": it has version 2 of the format, and this muster reads version 1; use "
                      "muster 9.0.0 or newer");
  EXPECT_EQ(Replay({Path("newer"), "--html"}).code, 2);
}

TEST_F(ReplayTest, PageThatCannotBeWrittenIsNamed) {
  Command run = StartAgent({"--standalone", "--event-log=" + Path("log")}, "true");
  EXPECT_EQ(run.Wait(), 0) << run.err();
  const Result full = Replay({Path("log"), "--html=/dev/full"});
  EXPECT_EQ(full.code, 4);
  EXPECT_EQ(full.err, "muster replay: write the page /dev/full: No space left on device\n");
}

}  // namespace
}  // namespace muster::test
