#include "launcher/remote/host_list.h"

#include <gtest/gtest.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "test/support/temp_dir.h"

namespace muster::launcher {
namespace {

std::string Show(const absl::StatusOr<std::vector<Host>>& hosts) {
  if (!hosts.ok()) return std::string(hosts.status().message());
  return absl::StrJoin(*hosts, " ", [](std::string* out, const Host& host) {
    absl::StrAppend(out, host.Text());
    if (host.workers) absl::StrAppend(out, ":", *host.workers);
  });
}

std::string HostsOf(const char* text) {
  return Show(ParseHostfile(text, "hosts.txt"));
}

TEST(HostfileTest, AllTheWaysInWhichPeopleWriteThem) {
  EXPECT_EQ(HostsOf("# the cluster\n"
                    "node0 slots=8   # the large one\n"
                    "node1 slots=4 max_slots=8\r\n"
                    "\n"
                    "  node2:2\n"
                    "node[3-4]:4\n"
                    "alice@node5\n"
                    "[fd00::1] slots=2"),
            "node0:8 node1:4 node2:2 node3:4 node4:4 alice@node5 fd00::1:2");
}

TEST(HostfileTest, RepeatedHostsAddUp) {
  EXPECT_EQ(HostsOf("node0\nnode1\nnode0\n"), "node0:2 node1");
  EXPECT_EQ(HostsOf("node0 slots=2\nnode1:1\nnode0:3\n"), "node0:5 node1:1");
}

TEST(HostfileTest, EachMistakeIsNamedWithItsLine) {
  EXPECT_EQ(HostsOf("node0\nnode1 slots=x\n"),
            "hosts.txt:2: slots=x is not a number of workers from 1 to 32768");
  EXPECT_EQ(HostsOf("node0 slots\n"),
            "hosts.txt:1: slots is not a number of workers from 1 to 32768");
  EXPECT_EQ(HostsOf("node0 8\n"),
            "hosts.txt:1: unknown word '8' after a host; only slots=N and comments (#) are allowed "
            "there");
  EXPECT_EQ(
      HostsOf("\n\nnode0:2 slots=2\n"),
      "hosts.txt:3: gives the number of workers twice for node0 has; keep the colon or slots=");
  EXPECT_EQ(HostsOf("node[1-\n"),
            "hosts.txt:1: this line has 'node[1-', which has a [ without its ]; write node[1-3]");
  EXPECT_EQ(HostsOf("# nothing\n\n"), "hosts.txt has no host; write a name on each line");
}

TEST(HostfileTest, FileIsReadFromWhereItIs) {
  const test::TempDir dir;
  const std::string path = absl::StrCat(dir.path(), "/hosts");
  std::ofstream(path) << "node[0-1] slots=2\n";
  EXPECT_EQ(Show(ReadHostfile(path)), "node0:2 node1:2");
  EXPECT_EQ(Show(ReadHostfile(path + "x")),
            absl::StrCat("read the hostfile ", path, "x: No such file or directory"));
  EXPECT_EQ(Show(ReadHostfile(dir.path())),
            absl::StrCat("read the hostfile ", dir.path(), ": Is a directory"));
}

TEST(HostfileTest, WrongFileIsNotReadToItsEnd) {
  EXPECT_EQ(Show(ReadHostfile("/dev/zero")),
            "the hostfile /dev/zero is larger than 16 MiB; is it the right file?");
}

}  // namespace
}  // namespace muster::launcher
