#include "launcher/remote/link_command.h"

#include <sys/stat.h>

#include <cstdio>
#include <fstream>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/temp_dir.h"

namespace muster::launcher {
namespace {

using testing::ElementsAre;

TEST(LinkCommandTest, SshGetsTheUserAndAsksNothing) {
  const std::vector<std::string> argv =
      SshCommand({.name = "node1", .user = "alice", .workers = {}}, "the command", std::nullopt);
  EXPECT_EQ(argv.front(), "ssh");
  EXPECT_THAT(argv, testing::Contains("-oBatchMode=yes"));
  EXPECT_THAT(std::vector<std::string>(argv.end() - 5, argv.end()),
              ElementsAre("-l", "alice", "--", "node1", "the command"));
}

// A shell command's output on both streams.
std::string OutputOf(const std::string& shell, const std::string& command) {
  FILE* const output = ::popen((shell + " -c " + ShellQuoted(command) + " 2>&1").c_str(), "r");
  if (output == nullptr) return "";
  std::string text;
  for (int c; (c = std::fgetc(output)) != EOF;) text += static_cast<char>(c);
  ::pclose(output);
  return text;
}

void WriteProgram(const std::string& path, const std::string& says) {
  std::ofstream(path) << "#!/bin/sh\necho " << says << " \"$@\"\n";
  ::chmod(path.c_str(), 0755);
}

// The ssh command line for node1 with kept connections, for a configuration given as lines of `ssh
// -G`, each quoted for a shell.
std::string RanWith(const std::string& settings) {
  const test::TempDir dir;
  std::ofstream(dir.Path("ssh")) << "#!/bin/sh\ntest \"$1\" != -G || { printf '%s\\n' " << settings
                                 << "; exit; }\necho \"$*\"\n";
  ::chmod(dir.Path("ssh").c_str(), 0755);
  const KeptConnections kept{.prefix = "/run/k-", .time = std::chrono::seconds(7)};
  std::string command = "PATH=" + dir.Path("") + ":/usr/bin:/bin";
  for (const std::string& word :
       SshCommand({.name = "node1", .user = "", .workers = {}}, "the command", kept)) {
    command += " " + ShellQuoted(word);
  }
  return OutputOf("/bin/sh", command);
}

constexpr char kSettings[] =
    " 'user me' 'hostname 10.0.0.1' 'port 22' 'forwardagent no' 'gssapidelegatecredentials no'";

TEST(LinkCommandTest, ConnectionIsKeptForTheMachineAndUserThatAreReached) {
  EXPECT_THAT(RanWith(kSettings),
              testing::StartsWith("-oControlMaster=auto -oControlPath=/run/k-me@10.0.0.1:22 "
                                  "-oControlPersist=7 -T -oBatchMode=yes "));
  EXPECT_THAT(RanWith(kSettings), testing::EndsWith(" -- node1 the command\n"));
  EXPECT_THAT(RanWith("'hostname fd00::1' 'port 2222' 'user you'"),
              testing::HasSubstr("ControlPath=/run/k-you@fd00::1:2222 "));
}

// "I type my password once a day, into a connection that I open by hand; muster logged in by
// itself, and failed." "My job ended, and so did that of a colleague who uses the same jump host."
TEST(LinkCommandTest, ConnectionIsNotKeptWhereThatWouldBeWorse) {
  for (const std::string setting :
       {"'controlpath /home/me/%C'", "'proxyjump gate'", "'proxycommand nc %h %p'",
        "'forwardagent yes'", "'forwardagent /run/agent'", "'gssapidelegatecredentials yes'",
        "'hostname fe80::1%eth0'", "'hostname a$b'"}) {
    EXPECT_THAT(RanWith(kSettings + std::string(" ") + setting),
                testing::StartsWith("-T -oBatchMode=yes "))
        << setting;
  }
  const std::string longest(200, 'a');
  EXPECT_THAT(RanWith(kSettings + std::string(" 'hostname ") + longest + "'"),
              testing::StartsWith("-T -oBatchMode=yes "));
}

TEST(LinkCommandTest, SshSaysWhatIsWrongWithItsConfiguration) {
  EXPECT_THAT(RanWith(kSettings + std::string("; exit 255")),
              testing::StartsWith("-T -oBatchMode=yes "));
}

TEST(LinkCommandTest, TheShellThatIsGivenTheCommandBecomesMusterWhereItIs) {
  const test::TempDir dir;
  const std::string here = dir.Path("it's here"), path = dir.Path("muster");
  WriteProgram(here, "here");
  WriteProgram(path, "path");
  for (const std::string shell : {"/bin/sh", "/bin/bash"}) {
    // No other shell can be found.
    const std::string without_sh = "PATH= " + shell;
    EXPECT_EQ(
        OutputOf(without_sh, RemoteCommand(here, ProgramSource::kInstalled, LoginShell::kUsual)),
        "here _host\n");
    const std::string with_muster = "PATH=/usr/bin:/bin:" + dir.Path("") + " " + shell;
    for (const LoginShell knows : {LoginShell::kUsual, LoginShell::kAny}) {
      EXPECT_EQ(OutputOf(with_muster, RemoteCommand(here, ProgramSource::kInstalled, knows)),
                "here _host\n");
      EXPECT_EQ(
          OutputOf(with_muster, RemoteCommand("/it's/nowhere", ProgramSource::kInstalled, knows)),
          "path _host\n");
      EXPECT_EQ(OutputOf("PATH=/usr/bin:/bin " + shell,
                         RemoteCommand("/it's/nowhere", ProgramSource::kInstalled, knows)),
                "there is no muster there, neither in PATH nor as /it's/nowhere\n");
    }
  }
}

TEST(LinkCommandTest, AShellThatKnowsNothingButQuotesBecomesAPosixShell) {
  for (const ProgramSource source :
       {ProgramSource::kInstalled, ProgramSource::kInstalledOrShipped, ProgramSource::kShipped}) {
    EXPECT_THAT(RemoteCommand("/here", source, LoginShell::kAny),
                testing::StartsWith("exec sh -c '"));
  }
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
