#include "trainer/data/samples/data_files.h"

#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "test/support/temp_dir.h"

namespace muster::trainer {
namespace {

class CsvFileTest : public testing::Test {
 protected:
  // "1:a|b 3:c|d": each record's line and fields. Or the refusal.
  std::string Read(std::string_view text) {
    std::string rows;
    const std::string path = dir_.Write("x.csv", text);
    const absl::Status status = ReadCsv(path, [&](const CsvRow& row) {
      absl::StrAppend(&rows, rows.empty() ? "" : " ", row.line, ":",
                      absl::StrJoin(row.fields, "|"));
      return absl::OkStatus();
    });
    if (status.ok()) return rows;
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    const std::string start = "read " + path + ": ";
    EXPECT_EQ(status.message().substr(0, start.size()), start);
    return std::string(status.message().substr(std::min(start.size(), status.message().size())));
  }

  const test::TempDir dir_;
};

TEST_F(CsvFileTest, FieldsAreSeparatedAndQuotedAsRfc4180Says) {
  EXPECT_EQ(Read("a,b\r\n1,2\r\n"), "1:a|b 2:1|2");
  EXPECT_EQ(Read("a,b\n1,2"), "1:a|b 2:1|2");
  EXPECT_EQ(Read("\"a,b\",\"say \"\"x\"\"\"\n,\n"), "1:a,b|say \"x\" 2:|");
  EXPECT_EQ(Read("a , b\n\" c\",d\n"), "1:a|b 2: c|d");
  EXPECT_EQ(Read("\xef\xbb\xbf\"a\",b\n"), "1:a|b");
  EXPECT_EQ(Read(""), "");
}

TEST_F(CsvFileTest, LinesAreCountedThroughQuotesAndEmptyOnes) {
  EXPECT_EQ(Read("a\n\n\"b\nc\"\nd\n\r\ne"), "1:a 3:b\nc 5:d 7:e");
  EXPECT_EQ(Read("a\rb\rc"), "1:a 1:b 1:c");
}

TEST_F(CsvFileTest, MistakesAreRefusedWithTheirLine) {
  const std::string advice =
      "a field has a quote in it or something behind its quotes; put the whole field in quotes, "
      "and write each quote inside it twice";
  EXPECT_EQ(Read("a,b\n1,x\"y\n"), "line 2: " + advice);
  EXPECT_EQ(Read("a,b\n1,2\n\"x\"y,3\n"), "line 3: " + advice);
  EXPECT_EQ(Read("a,b\n1,\"2\n3,4\n"), "line 2: a quote is never closed");
  EXPECT_EQ(Read("a,b\n1,\"2"), "line 2: a quote is never closed");
  EXPECT_EQ(Read(std::string_view("a\n\0\n", 4)),
            "line 2: it has a zero byte, so this is not text");
  EXPECT_EQ(Read("a\n\"" + std::string(std::size_t{17} << 20, 'x') + "\nb\""),
            "line 2: a quote is not closed within 16 MiB");
}

TEST_F(CsvFileTest, FilesThatCannotBeReadAreNamed) {
  const auto none = [](const CsvRow&) { return absl::OkStatus(); };
  EXPECT_EQ(ReadCsv("/nonexistent.csv", none).message(),
            "read /nonexistent.csv: No such file or directory");
  EXPECT_EQ(ReadCsv(dir_.path(), none).message(), "read " + dir_.path() + ": not a regular file");
}

TEST_F(CsvFileTest, WhatTheCallerRefusesEndsTheReading) {
  int rows = 0;
  const absl::Status status = ReadCsv(dir_.Write("x.csv", "a\nb\nc\n"), [&](const CsvRow& row) {
    ++rows;
    return row.fields[0] == "b" ? absl::CancelledError("enough") : absl::OkStatus();
  });
  EXPECT_EQ(status.message(), "enough");
  EXPECT_EQ(rows, 2);
}

TEST_F(CsvFileTest, AnyBytesAreReadOrRefused) {
  std::mt19937 random(3);
  constexpr std::string_view kBytes = "ab1,,\"\"\n\n\r \xff";
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (std::size_t size = random() % 60; size > 0; --size)
      text += kBytes[random() % kBytes.size()];
    const std::string read = Read(text);
    EXPECT_LT(read.size(), 1000u);
  }
}

}  // namespace
}  // namespace muster::trainer
