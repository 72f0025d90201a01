#include "base/program.h"

#include <csignal>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace muster::base {
namespace {

std::string ProcFile(pid_t pid, const std::string& name) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/" + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

// `pkill -9 -f 'muster run'` killed the guard together with the agent, and what the workers had
// started was left.
TEST(CompanionTest, CommandLineIsItsOwn) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  std::string words = std::string("train") + '\0' + "--some=flag" + '\0';
  char* argv[] = {words.data(), words.data() + 6, nullptr};
  LendCommandLine(2, argv);
  const absl::StatusOr<pid_t> child = StartCompanion("the-guard", [&] {
    const bool said = write(ready[1], words.data(), words.size()) > 0;
    while (said) pause();
  });
  ASSERT_TRUE(child.ok()) << child.status();
  std::string there(words.size(), '?');
  ASSERT_EQ(read(ready[0], there.data(), there.size()), static_cast<ssize_t>(there.size()));
  EXPECT_EQ(there, "the-guard" + std::string(words.size() - 9, '\0'));
  EXPECT_EQ(ProcFile(*child, "comm"), "the-guard\n");
  EXPECT_EQ(words.substr(0, 5), "train") << "this process's own stays";
  // No signal that can be blocked ends it.
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) kill(*child, signal);
  EXPECT_EQ(ProcFile(*child, "comm"), "the-guard\n");
  kill(*child, SIGKILL);
  Reap(*child);
}

}  // namespace
}  // namespace muster::base
