#include "launcher/remote/host_list.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster::launcher {
namespace {

// "node0:8 node1", or the error.
std::string Read(const char* text) {
  const auto hosts = ParseHostList(text);
  if (!hosts.ok()) return std::string(hosts.status().message());
  return absl::StrJoin(*hosts, " ", [](std::string* out, const Host& host) {
    absl::StrAppend(out, host.Text());
    if (host.workers) absl::StrAppend(out, ":", *host.workers);
  });
}

TEST(HostListTest, NamesMayHaveNumbersOfWorkersAndRanges) {
  EXPECT_EQ(Read("node0"), "node0");
  EXPECT_EQ(Read("node0:8,node[1-3]:4"), "node0:8 node1:4 node2:4 node3:4");
  EXPECT_EQ(Read("a[1-2,7],b"), "a1 a2 a7 b");
}

TEST(HostListTest, UsersStandBeforeTheHost) {
  EXPECT_EQ(Read("alice@node[1-2]:4,node3"), "alice@node1:4 alice@node2:4 node3");
}

TEST(HostListTest, Ipv6AddressesAreInBrackets) {
  EXPECT_EQ(Read("[fd00::1]:4,[fd00::2]"), "fd00::1:4 fd00::2");
  EXPECT_EQ(Read("bob@[fe80::1%eth0]:2"), "bob@fe80::1%eth0:2");
  EXPECT_EQ(Read("10.0.0.[1-2]:2"), "10.0.0.1:2 10.0.0.2:2");
  EXPECT_EQ(Read("fd00::1"),
            "has 'fd00::1', which has several colons; write an IPv6 address in brackets, as in "
            "[fd00::1]:4");
  EXPECT_EQ(Read("[fd00::1]4"),
            "has '[fd00::1]4', which has text after an address in brackets; write [fd00::1]:4");
}

TEST(HostListTest, HostThatIsNamedAgainHasTheWorkersOfAllItsMentions) {
  EXPECT_EQ(Read("node0:2,node1,node0:3"), "node0:5 node1");
  EXPECT_EQ(Read("node0,node0,node0"), "node0:3");
  EXPECT_EQ(Read("node0:4,node0"), "node0:5");
  EXPECT_EQ(Read("node0:30000,node0:30000"), "gives node0 more than 32768 workers in total");
}

TEST(HostListTest, EachMistakeHasItsSentence) {
  EXPECT_EQ(Read(""), "has no host between two commas; write node0:8,node[1-3]:4");
  EXPECT_EQ(Read("node0,"), "has no host between two commas; write node0:8,node[1-3]:4");
  EXPECT_EQ(Read(":4"), "has ':4', which has no host; write node0:8,node[1-3]:4");
  EXPECT_EQ(Read("node0:0"),
            "has 'node0:0', which says '0' behind the colon, which is not a number of workers from "
            "1 to 32768");
  EXPECT_EQ(
      Read("node0:"),
      "has 'node0:', which says '' behind the colon, which is not a number of workers from 1 to "
      "32768");
  EXPECT_EQ(Read("@node0"), "has '@node0', which has no user before the @; write user@node0");
  EXPECT_EQ(Read("node[3-1]"), "has 'node[3-1]', which has a backward range, 3-1; write 1-3");
}

// A host's name is never an option to ssh, or a command to a shell.
TEST(HostListTest, NamesThatAreNoneAreRefused) {
  for (const char* text : {"-oProxyCommand=x", "node 0", "node;reboot", "$(id)", "a\nb", "a`b`",
                           "node0@", "user@-x", "-l@node0", "a'b", "x\033[2J"}) {
    EXPECT_FALSE(ParseHostList(text).ok()) << text;
  }
  EXPECT_EQ(Read("a\x1b"), "has 'a\\x1b', which has characters that are not valid in a host name");
}

}  // namespace
}  // namespace muster::launcher
