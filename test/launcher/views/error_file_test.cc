#include "launcher/run/failure_report.h"

#include <cstddef>
#include <fstream>
#include <string>
#include <vector>

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
}

std::string Read(const TempDir& temp, const std::string& text) {
  const auto file = ReadErrorFile(temp.Write("some.json", text));
  return file ? file->message : "(nothing)";
}

// "The message was a tensor of 7 MB, and the report read as if there were no error file."
TEST(ErrorFileTest, OfALongMessageTheBeginningAndTheEndAreShown) {
  const TempDir temp;
  const std::string numbers(7 << 20, '1');
  const std::string record = R"({"message": {"message": "ValueError: [)" + numbers +
                             R"(] is not finite", "extraInfo": {"py_callstack": "Traceback:\n)" +
                             numbers + R"(\nthe end", "timestamp": "1700000000"}}})";
  const auto file = ReadErrorFile(temp.Write("error.json", record));
  ASSERT_TRUE(file.has_value());
  EXPECT_TRUE(file->message.starts_with("ValueError: [1111"));
  EXPECT_TRUE(file->message.ends_with("1111] is not finite"));
  EXPECT_NE(file->message.find("1 [... 7336476 bytes more in the error file ...] 1"),
            std::string::npos)
      << file->message;
  EXPECT_LT(file->message.size(), 4096u) << "what the rendezvous passes on";
  EXPECT_TRUE(file->traceback.starts_with("Traceback:\n111"));
  EXPECT_TRUE(file->traceback.ends_with("111\nthe end"));
  EXPECT_LT(file->traceback.size(), rendezvous::kMaxTraceback);
  EXPECT_EQ(file->timestamp, 1700000000);
}

TEST(ErrorFileTest, FileThatIsTooLongToBeParsedIsShownAsItIs) {
  const TempDir temp;
  const std::string shown =
      Read(temp, R"({"message": "it broke: )" + std::string(17 << 20, 'x') + R"( in all"})");
  EXPECT_TRUE(shown.starts_with(R"({"message": "it broke: xxx)"));
  EXPECT_TRUE(shown.ends_with(R"(xxx in all"})"));
  EXPECT_NE(shown.find(" bytes more in the error file ...] x"), std::string::npos);
}

TEST(ErrorFileTest, WhatIsNoRecordIsItsOwnMessage) {
  const TempDir temp;
  for (const char* text :
       {"{", "3", R"({"message": 3})", R"({"message": {"message": {"text": "m"}}})",
        R"({"message": ["a", "b"]})", R"({"message": {"message": "cut of)", "CUDA error 700\n",
        R"({"error": "out of memory"})", "\xff\xfe"}) {
    EXPECT_EQ(Read(temp, text), text);
  }
  for (const char* text : {"", " \n", "{}", "[]", "null"}) EXPECT_EQ(Read(temp, text), "(nothing)");
}

TEST(ErrorFileTest, CharactersAreNotCut) {
  const TempDir temp;
  std::string text = "x";
  for (int i = 0; i < 3000; ++i) text += "\u20ac";
  const std::string shown = Read(temp, text);
  EXPECT_NE(shown.find("\u20ac [... "), std::string::npos) << shown;
  EXPECT_NE(shown.find("...] \u20ac"), std::string::npos) << shown;
}

// A worker may have written anything there.
TEST(ErrorFileTest, DeepNestingIsNotPassedOn) {
  const TempDir temp;
  const std::string deep(500'000, '[');
  rendezvous::WorkerFailure failure{.exit_code = 3, .what = "exited with code 3"};
  failure.error_file = temp.Write("error.json", R"({"message": {"message": "m", "extraInfo": )" +
                                                    deep + std::string(deep.size(), ']') + "}}");
  failure.error_message = ReadErrorFile(failure.error_file)->message;
  EXPECT_EQ(failure.error_message, "m");
  ASSERT_TRUE(WriteRootCause(temp.path() + "/root.json", failure).ok());
  EXPECT_EQ(ReadErrorFile(temp.path() + "/root.json")->message, "m");
}

TEST(ErrorFileTest, NoPartOfASecretRemainsWhereATextIsCut) {
  const base::Redactor redact(std::vector<std::string>{"API_TOKEN=correct-horse-battery-staple"});
  const TempDir temp;
  for (std::size_t before = 2020; before < 2060; ++before) {
    const std::string path = temp.Write(
        "error.json", R"({"message": ")" + std::string(before, 'x') +
                          "correct-horse-battery-staple" + std::string(9000, 'x') + "\"}");
    EXPECT_EQ(ReadErrorFile(path, redact)->message.find("horse"), std::string::npos) << before;
  }
}

TEST(ErrorFileTest, LongRootCauseIsPassedOnWhole) {
  const TempDir temp;
  const std::string message(100'000, 'x');
  rendezvous::WorkerFailure failure{.exit_code = 3, .what = "exited with code 3"};
  failure.error_file = temp.Write("error.json", R"({"message": {"message": ")" + message + "\"}}");
  failure.error_message = ReadErrorFile(failure.error_file)->message;
  ASSERT_TRUE(WriteRootCause(temp.path() + "/root.json", failure).ok());
  EXPECT_EQ(nlohmann::json::parse(std::ifstream(temp.path() + "/root.json"))["message"]["message"],
            message);
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
