#include "launcher/report/error_file.h"

#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/temp_dir.h"

namespace muster::launcher {
namespace {

using test::TempDir;

TEST(ErrorFileTest, RecordOfAnExceptionIsRead) {
  const auto file = ParseErrorFile(
      R"({"message": {"message": "ValueError: no such layer",
          "extraInfo": {"py_callstack": "Traceback:\n  File x\n", "timestamp": "1700000000"}}})");
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(*file, (ErrorFile{"ValueError: no such layer", "Traceback:\n  File x\n", 1700000000}));
}

TEST(ErrorFileTest, OlderFormWithAPlainMessageIsRead) {
  EXPECT_EQ(*ParseErrorFile(R"({"message": "it broke", "timestamp": 1700000001})"),
            (ErrorFile{"it broke", "", 1700000001}));
}

TEST(ErrorFileTest, MessageAloneIsEnough) {
  EXPECT_EQ(*ParseErrorFile(R"({"message": {"message": "m", "extraInfo": 3}})"),
            (ErrorFile{"m", "", std::nullopt}));
  EXPECT_EQ(*ParseErrorFile(R"({"message": {"message": "m",
                                "extraInfo": {"py_callstack": 1, "timestamp": "noon"}}})"),
            (ErrorFile{"m", "", std::nullopt}));
}

TEST(ErrorFileTest, WhatSaysNothingIsNoErrorFile) {
  for (const char* text :
       {"", "{", "[]", "3", "null", "{}", R"({"message": 3})", R"({"message": ""})",
        R"({"message": {"extraInfo": {}}})", R"({"message": {"message": 1}})",
        R"({"message": "cut of)", "\xff\xfe"}) {
    EXPECT_FALSE(ParseErrorFile(text).has_value()) << text;
  }
}

TEST(ErrorFileTest, OnlyARegularFileOfReasonableSizeIsRead) {
  const TempDir temp;
  const std::string good = temp.Write("error.json", R"({"message": "it broke"})");
  EXPECT_EQ(ReadErrorFile(good)->message, "it broke");
  EXPECT_FALSE(ReadErrorFile(temp.path() + "/none.json").has_value());
  EXPECT_FALSE(ReadErrorFile(temp.path()).has_value());
  EXPECT_FALSE(ReadErrorFile("/dev/zero").has_value());
  EXPECT_FALSE(ReadErrorFile("").has_value());
  const std::string big = R"({"message": ")" + std::string(1 << 20, 'x') + R"("})";
  EXPECT_FALSE(ReadErrorFile(temp.Write("big.json", big)).has_value());
}

// What a user saw: torchrun's caller reads its TORCHELASTIC_ERROR_FILE, and there was none.
TEST(ErrorFileTest, RootCauseIsLeftForWhoeverStartedTheRun) {
  const TempDir dir;
  const std::string own =
      dir.Write("error.json",
                R"({"message": {"message": "ValueError: x", "extraInfo": {"py_callstack": "T\n",
          "timestamp": "1700000000"}, "rank": 3}})");
  rendezvous::WorkerFailure failure{.exit_code = 3, .what = "exited with code 3"};
  failure.error_file = own;
  failure.error_message = "ValueError: x";
  const std::string path = dir.path() + "/root.json";
  dir.Write("root.json", "of an earlier run");
  ASSERT_TRUE(WriteRootCause(path, failure).ok());
  const auto json = nlohmann::json::parse(std::ifstream(path));
  EXPECT_EQ(json["message"]["errorCode"], 3);
  EXPECT_EQ(json["message"]["message"], "ValueError: x");
  EXPECT_EQ(json["message"]["rank"], 3);  // what else was in it
  EXPECT_EQ(json["message"]["extraInfo"]["timestamp"], "1700000000");
}

TEST(ErrorFileTest, RootCauseOfAnotherNodeOrWithoutAFileIsWrittenFromWhatIsKnown) {
  const TempDir dir;
  const std::string path = dir.path() + "/root.json";
  rendezvous::WorkerFailure remote{.signal = 11, .what = "was killed by SIGSEGV"};
  remote.error_file = dir.path() + "/not-here.json";
  remote.error_message = "ValueError: y";
  remote.error_traceback = "T\n";
  remote.error_time = 1700000001;
  ASSERT_TRUE(WriteRootCause(path, remote).ok());
  EXPECT_EQ(nlohmann::json::parse(std::ifstream(path))["message"]["errorCode"], -11);
  EXPECT_EQ(*ReadErrorFile(path), (ErrorFile{"ValueError: y", "T\n", 1700000001}));
  remote.error_message.clear();
  ASSERT_TRUE(WriteRootCause(path, remote).ok());
  EXPECT_EQ(ReadErrorFile(path)->message, "was killed by SIGSEGV");
}

TEST(ErrorFileTest, RootCauseThatCannotBeWrittenIsToldWithTheCause) {
  EXPECT_EQ(
      WriteRootCause("/no/such/dir/root.json", {}).message(),
      "write the root cause to /no/such/dir/root.json (TORCHELASTIC_ERROR_FILE): No such file "
      "or directory");
}

}  // namespace
}  // namespace muster::launcher
