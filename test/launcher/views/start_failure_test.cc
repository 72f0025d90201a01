// "A script that does not even compile is started four times before I am told."
#include "launcher/run/failure_report.h"

#include <csignal>
#include <string>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace muster::launcher {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

rendezvous::WorkerFailure FailedToStart(int exit_code, const std::string& stderr_tail) {
  return {.exit_code = exit_code, .stderr_tail = stderr_tail};
}

constexpr StartFacts kOne{.no_beat = true, .elapsed = seconds(3)};
constexpr StartFacts kAll{.no_beat = true, .elapsed = seconds(3), .alike = true};

constexpr char kNotPython[] =
    "  File \"/work/train.py\", line 1\n    def f(:\n          ^\nSyntaxError: invalid syntax\n";
constexpr char kUsage[] =
    "usage: train.py [-h] [--lr LR]\ntrain.py: error: unrecognized arguments: --rl=3\n";

TEST(StartFailureTest, WhatPythonsCompilerRefusesIsTheSameEachTime) {
  EXPECT_EQ(WhyEachStartFails(FailedToStart(1, kNotPython), kOne), "its script cannot be compiled");
  for (const char* text :
       {"IndentationError: unexpected indent", "TabError: inconsistent use of tabs\r\n",
        "Traceback (most recent call last):\n  File \"/work/train.py\", line 3, in <module>\n"
        "    import model\n  File \"/work/model.py\", line 1\nSyntaxError: invalid syntax\n",
        "Traceback (most recent call last):\n  File \"/work/train.py\", line 3, in <module>\n"
        "  File \"/a, in 2/model.py\", line 1\nSyntaxError: invalid syntax\n"}) {
    EXPECT_EQ(WhyEachStartFails(FailedToStart(1, text), kOne), "its script cannot be compiled")
        << text;
  }
}

// "A configuration was half written when a rank read it, and the run ended without a restart."
TEST(StartFailureTest, TextThatAProgramReadsMayBeAnotherTheNextTime) {
  constexpr char kStack[] =
      "Traceback (most recent call last):\n  File \"/work/train.py\", line 2, in <module>\n"
      "    config = ast.literal_eval(text)\n  File \"/usr/lib/python3.11/ast.py\", line 64, in "
      "literal_eval\n";
  for (const char* name : {"<unknown>", "<string>"}) {
    const std::string text = std::string(kStack) + "  File \"" + name +
                             "\", line 1\n    1 +\n      ^\nSyntaxError: invalid syntax\n";
    EXPECT_EQ(WhyEachStartFails(FailedToStart(1, text), kAll), "") << text;
  }
}

// "A broken image among a million ended my run without a restart": Pillow raises a SyntaxError.
TEST(StartFailureTest, SyntaxErrorThatAProgramRaisesMayNotComeAgain) {
  for (const char* place : {"\"/work/train.py\", line 2, in load\n    raise SyntaxError(text)\n",
                            "\"/usr/lib/python3/PIL/PngImagePlugin.py\", line 7, in chunk\n",
                            "\"run.cfg\", line 1\n    1 +\n      ^\n"}) {
    const std::string text = absl::StrCat("Traceback (most recent call last):\n  File ", place,
                                          "SyntaxError: broken PNG file (chunk b'IDAT')\n");
    EXPECT_EQ(WhyEachStartFails(FailedToStart(1, text), kAll), "") << text;
  }
}

TEST(StartFailureTest, ScriptThatIsNotThereIsNotThereTheNextTime) {
  for (const auto& [code, text] :
       {std::pair(1, "/usr/bin/python3: No module named train\n"),
        std::pair(1, "/home/a b/venv/bin/python3: No module named train\n"),
        std::pair(1, "/venv/bin/python: No module named train.__main__; 'train' is a package\n"),
        std::pair(2, "python3: can't open file '/work/t.py': [Errno 2] No such file\n")}) {
    EXPECT_EQ(WhyEachStartFails(FailedToStart(code, text), kOne), "its script was not found")
        << text;
  }
}

TEST(StartFailureTest, WrongArgumentsAreWrongEachTime) {
  EXPECT_EQ(WhyEachStartFails(FailedToStart(2, kUsage), kOne), "its arguments are wrong");
  EXPECT_EQ(
      WhyEachStartFails(FailedToStart(2, "Usage: train [OPTIONS]\nError: No such option\n"), kOne),
      "its arguments are wrong");
}

TEST(StartFailureTest, Code2WithoutAWordIsOneIfAllOfTheNodeEndSo) {
  EXPECT_EQ(WhyEachStartFails(FailedToStart(2, "cannot reach the file server\n"), kOne), "");
  EXPECT_NE(
      WhyEachStartFails(FailedToStart(2, "train.sh: 3: Syntax error: \"fi\" unexpected\n"), kAll),
      "");
  EXPECT_NE(WhyEachStartFails(FailedToStart(2, ""), kAll), "");
  EXPECT_EQ(WhyEachStartFails(FailedToStart(3, ""), kAll), "");
}

TEST(StartFailureTest, WhatHasTrainedHadAGoodStart) {
  EXPECT_EQ(WhyEachStartFails(FailedToStart(2, kUsage), {.no_beat = false}), "");
  EXPECT_EQ(WhyEachStartFails(FailedToStart(1, kNotPython), {.no_beat = false}), "");
  EXPECT_EQ(WhyEachStartFails(FailedToStart(2, kUsage), {.no_beat = true, .elapsed = minutes(5)}),
            "");
  EXPECT_EQ(WhyEachStartFails(FailedToStart(2, ""),
                              {.no_beat = true, .elapsed = minutes(1), .alike = true}),
            "");
}

TEST(StartFailureTest, OtherFailuresMayNotComeAgain) {
  for (const char* text : {"", "RuntimeError: CUDA error\n", "ModuleNotFoundError: No module named",
                           "error: SyntaxError: in a log line", "ssh: No module named x\n",
                           "my python loader: can't open file '/data/x'\n"}) {
    EXPECT_EQ(WhyEachStartFails(FailedToStart(1, text), kAll), "") << text;
  }
  rendezvous::WorkerFailure killed = FailedToStart(2, kUsage);
  killed.signal = SIGKILL;
  EXPECT_EQ(WhyEachStartFails(killed, kAll), "");
}

TEST(StartFailureTest, OthersAreWaitedForOnlyAfterCode2AtTheStart) {
  EXPECT_TRUE(MayBeUsageError({.exit_code = 2}, kOne));
  EXPECT_FALSE(MayBeUsageError({.exit_code = 1}, kOne));
  EXPECT_FALSE(MayBeUsageError({.exit_code = 2, .signal = SIGKILL}, kOne));
  EXPECT_FALSE(MayBeUsageError({.exit_code = 2}, {.no_beat = false}));
  EXPECT_FALSE(MayBeUsageError({.exit_code = 2}, {.no_beat = true, .elapsed = minutes(1)}));
}

}  // namespace
}  // namespace muster::launcher
