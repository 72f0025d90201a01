#include "launcher/error_file.h"

#include <gtest/gtest.h>

#include "test/launcher/temp_dir.h"

namespace muster::launcher {
namespace {

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

}  // namespace
}  // namespace muster::launcher
