#include "launcher/hosts/link_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::launcher {
namespace {

using testing::ElementsAre;

TEST(LinkCommandTest, SshGetsTheUserAndAsksNothing) {
  const std::vector<std::string> argv =
      SshCommand({.name = "node1", .user = "alice", .workers = {}}, "the command");
  EXPECT_EQ(argv.front(), "ssh");
  EXPECT_THAT(argv, testing::Contains("-oBatchMode=yes"));
  EXPECT_THAT(std::vector<std::string>(argv.end() - 5, argv.end()),
              ElementsAre("-l", "alice", "--", "node1", "the command"));
}

TEST(LinkCommandTest, PathsWithQuotesStayOneWord) {
  EXPECT_EQ(ShellQuoted("it's"), "'it'\\''s'");
}

TEST(LinkCommandTest, CommandOfOnesOwnIsSplitAsAShellDoes) {
  const auto words =
      ParseLaunchWith(R"(docker exec -i {host} sh -c {command} "a b" c\ d 'e"f' '')");
  ASSERT_TRUE(words.ok()) << words.status();
  EXPECT_THAT(*words, ElementsAre("docker", "exec", "-i", "{host}", "sh", "-c", "{command}", "a b",
                                  "c d", "e\"f", ""));
  EXPECT_THAT(LaunchWithCommand({"go", "{user}@{host}", "{command}"},
                                {.name = "n1", .user = "bob", .workers = {}}, "x y"),
              ElementsAre("go", "bob@n1", "x y"));
}

TEST(LinkCommandTest, CommandThatDoesNotSayWhereTheHostGoesIsRefused) {
  for (const char* text : {"", "rsh {host}", "sh -c {command}"}) {
    EXPECT_EQ(ParseLaunchWith(text).status().message(),
              "does not say where the host or the command goes; write {host} and {command}, as in "
              "'docker exec -i {host} sh -c {command}'");
  }
  EXPECT_EQ(ParseLaunchWith("go '{host} {command}").status().message(),
            "has a ' that is not closed; close it");
}

}  // namespace
}  // namespace muster::launcher
