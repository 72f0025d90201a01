#include "rendezvous/core/names.h"

#include <gtest/gtest.h>

#include <string>

namespace muster::rendezvous {
namespace {

TEST(NamesTest, OrdinaryNamesAreAccepted) {
  for (const std::string& name : {std::string("a"), std::string("7"), std::string("job-1.retry_2"),
                                  std::string("node-0.rack-7.example.org"), std::string(64, 'x')}) {
    EXPECT_TRUE(CheckName("run id", name).ok()) << name;
  }
}

TEST(NamesTest, NamesThatCouldLeaveAFolderOrBreakALineAreRefusedWithOneSentence) {
  const struct {
    std::string name;
    std::string sentence;
  } cases[] = {
      {"", "run id is empty"},
      {"../pwn", "run id \"../pwn\" must start with a letter or a digit"},
      {"-rf", "run id \"-rf\" must start with a letter or a digit"},
      {"a/b", "run id \"a/b\" may only hold letters, digits, '.', '_' and '-'"},
      {"a\nb", "run id \"a\\nb\" may only hold letters, digits, '.', '_' and '-'"},
      {std::string("a\0b", 3),
       "run id \"a\\000b\" may only hold letters, digits, '.', '_' and '-'"},
      {"j\xc3\xb6"
       "b",
       "run id \"j\\303\\266b\" may only hold letters, digits, '.', '_' and '-'"},
      {"a..b", "run id \"a..b\" may not hold \"..\""},
      {std::string(65, 'x'),
       "run id \"" + std::string(64, 'x') + "...\" is longer than 64 characters"},
  };
  for (const auto& refused : cases) {
    const absl::Status status = CheckName("run id", refused.name);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << refused.name;
    EXPECT_EQ(std::string(status.message()), refused.sentence);
  }
}

}  // namespace
}  // namespace muster::rendezvous
