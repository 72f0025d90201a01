#include "rendezvous/core/values/phrases.h"

#include <gtest/gtest.h>

#include <string>

namespace muster::rendezvous {
namespace {

// `--role "$(hostname -s):" --tee 3`, as many published scripts have it, was refused.
TEST(NamesTest, AnyTextIsAName) {
  for (const std::string& name :
       {std::string("a"), std::string("7"), std::string("node-0.rack-7.example.org"),
        std::string("node0:"), std::string("trainer 1"), std::string("node0/gpu"),
        std::string("me@host:7"), std::string("_x"), std::string("-rf"), std::string(".."),
        std::string(".hidden"), std::string("../pwn"), std::string("100 %"), std::string("\"'`$"),
        std::string("größe 日本 😀"), std::string("a\u202eb"), std::string(80, 'x'),
        std::string(255, 'x')}) {
    EXPECT_TRUE(CheckName("run id", name).ok()) << name;
  }
}

TEST(NamesTest, WhatCouldBreakALineOrAFileIsRefusedWithOneSentence) {
  const struct {
    std::string name;
    std::string sentence;
  } cases[] = {
      {"", "run id is empty"},
      {"a\nb", "run id \"a\\nb\" has a control character"},
      {"a\x1b[2J", "run id \"a\\033[2J\" has a control character"},
      {"a\u009b"
       "2J",
       "run id \"a\\302\\2332J\" has a control character"},
      {std::string("a\0b", 3), "run id \"a\\000b\" has a control character"},
      {"j\xf6"
       "b",
       "run id \"j\\366b\" is not UTF-8"},
      {std::string(256, 'x'),
       "run id \"" + std::string(64, 'x') + "...\" is longer than 255 bytes"},
  };
  for (const auto& refused : cases) {
    const absl::Status status = CheckName("run id", refused.name);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << refused.name;
    EXPECT_EQ(std::string(status.message()), refused.sentence);
  }
}

TEST(NamesTest, ALineOfTheLogSaysWhereANameEnds) {
  EXPECT_EQ(NameInLog("job-1"), "job-1");
  EXPECT_EQ(NameInLog("me@host:7"), "me@host:7");
  EXPECT_EQ(NameInLog("my job"), "\"my job\"");
  EXPECT_EQ(NameInLog("a=b"), "\"a=b\"");
  EXPECT_EQ(NameInLog("a\"b\\c"), "\"a\\\"b\\\\c\"");
  EXPECT_EQ(NameInLog("a\u202eb"), "a?b");
}

}  // namespace
}  // namespace muster::rendezvous
