// `muster doctor --hosts` on network namespaces with a real sshd each, with one fault injected
// between them: a firewall, a small MTU, a slow link, a wrong clock, a missing host.
#include <csignal>
#include <filesystem>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/json.h"
#include "test/e2e/ssh_hosts.h"
#include "test/support/process_scan.h"
#include "test/support/wait_until.h"

namespace muster::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Measurements take seconds on a busy machine.
constexpr std::chrono::seconds kPatience(120);

class DoctorHostsTest : public SshHostsTest {
 protected:
  // Each test takes those that it names.
  void SetUp() override { MakeHosts(4); }

  struct Answer {
    std::optional<int> code;
    // "error: firewall: node0 -> node1: ..." for each, with its hosts if they are named.
    std::vector<std::string> findings;
    // By "node0 node1".
    std::map<std::string, base::Json> links;
    std::string text;
  };

  Answer Ask(const std::vector<std::string>& args) {
    std::vector<std::string> argv =
        Joined({std::filesystem::absolute(MusterPath()), "doctor", "--json"}, args);
    Command doctor = StartWhereTyped(argv);
    Answer answer{.code = doctor.Wait(kPatience), .text = doctor.out() + doctor.err()};
    const base::Json json = base::ParseJson(doctor.out());
    if (!json.is_object()) return answer;
    for (const base::Json& one : json["findings"]) {
      std::string hosts;
      for (const base::Json& host : one["hosts"]) hosts += host.get<std::string>() + " ";
      answer.findings.push_back(absl::StrCat(one["severity"].get<std::string>(), ": ", hosts,
                                             one["subject"].get<std::string>(), ": ",
                                             one["what"].get<std::string>()));
    }
    for (const base::Json& one : json["links"]) {
      answer.links[one["from"].get<std::string>() + " " + one["to"].get<std::string>()] = one;
    }
    return answer;
  }

  // The findings on one subject.
  static std::vector<std::string> About(const Answer& answer, const std::string& subject) {
    std::vector<std::string> about;
    for (const std::string& one : answer.findings) {
      if (one.find(" " + subject + ": ") != std::string::npos) about.push_back(one);
    }
    return about;
  }
};

TEST_F(DoctorHostsTest, EveryPairIsMeasuredBothWays) {
  const Answer answer = Ask({"--hosts=node0,node1,node2"});
  ASSERT_EQ(answer.links.size(), 6u) << answer.text;
  for (const auto& [pair, link] : answer.links) {
    EXPECT_TRUE(link["connects"].get<bool>()) << pair;
    EXPECT_GT(link["latency_us"].get<double>(), 0) << pair;
    EXPECT_GT(link["gbit_per_s"].get<double>(), 0) << pair;
    EXPECT_EQ(link["largest_packet"], 1500) << pair;
  }
  for (const char* const subject : {"firewall", "network", "MTU", "clocks", "host"}) {
    EXPECT_THAT(About(answer, subject), IsEmpty());
  }
  ExpectNothingLeft();
}

TEST_F(DoctorHostsTest, TextHasAMatrix) {
  Command doctor = StartWhereTyped(
      {std::filesystem::absolute(MusterPath()), "doctor", "--hosts=node[0-1]", "/tmp"});
  EXPECT_NE(doctor.Wait(kPatience), std::nullopt);
  EXPECT_THAT(doctor.out(), HasSubstr("2 hosts: "));
  EXPECT_THAT(doctor.out(), HasSubstr("round trips in ms, from the row to the column:"));
  EXPECT_THAT(doctor.out(), HasSubstr("bandwidth in Gbit/s, over one connection:"));
  for (const std::string& line : Lines(doctor.out())) EXPECT_LE(line.size(), 80u) << line;
}

// The user saw that the job's first collective never ended.
TEST_F(DoctorHostsTest, FirewallThatDropsOneWay) {
  if (!OnHost(1, "/usr/sbin/iptables -A INPUT -s 10.98.0.1 -p tcp --syn -j DROP")) {
    GTEST_SKIP() << "iptables cannot make a firewall here";
  }
  const Answer answer = Ask({"--hosts=node0,node1"});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(About(answer, "firewall"),
              testing::ElementsAre("error: firewall: node0 -> node1: connection attempts get no "
                                   "reply (UDP packets do arrive, the other direction works)."))
      << answer.text;
  EXPECT_GT(answer.links.at("node1 node0")["gbit_per_s"].get<double>(), 0);
  ExpectNothingLeft();
}

TEST_F(DoctorHostsTest, FirewallThatRejects) {
  if (!OnHost(0,
              "/usr/sbin/iptables -A INPUT -s 10.98.0.2 -p tcp --syn -j REJECT --reject-with "
              "tcp-reset")) {
    GTEST_SKIP() << "iptables cannot reject here";
  }
  const Answer answer = Ask({"--hosts=node0,node1"});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(
      About(answer, "firewall"),
      testing::ElementsAre(HasSubstr("error: firewall: node1 -> node0: a connection is "
                                     "refused (UDP packets do arrive, the other direction")))
      << answer.text;
}

TEST_F(DoctorHostsTest, NeitherHostReachesTheOther) {
  ASSERT_TRUE(OnHost(0, "ip route add blackhole 10.98.0.2/32"));
  const Answer answer = Ask({"-H", "node0,node1"});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.findings,
              testing::Contains(HasSubstr("error: network: node0 -> node1: no connection")))
      << answer.text;
  EXPECT_THAT(answer.findings,
              testing::Contains(
                  HasSubstr("error: firewall: node1 -> node0: connection attempts get no reply")));
}

// Hosts with jumbo frames on a switch without.
TEST_F(DoctorHostsTest, LargePacketsThatDoNotPass) {
  ASSERT_TRUE(OnHost(0, "ip link set eth0 mtu 9000") && OnHost(1, "ip link set eth0 mtu 9000"));
  const Answer answer = Ask({"--hosts=node0,node1"});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(About(answer, "MTU"),
              testing::Contains(
                  "error: MTU: node0 -> node1: the interfaces send packets of 9000 bytes, and "
                  "none of more than 1500 arrives."))
      << answer.text;
}

// A tunnel silently drops packets that are too large for it.
TEST_F(DoctorHostsTest, TransferThatComesToAHalt) {
  if (!OnHost(1,
              "/usr/sbin/iptables -A INPUT -s 10.98.0.1 -p tcp -m length --length 1000:65535 -j "
              "DROP")) {
    GTEST_SKIP() << "iptables cannot tell packets by their length here";
  }
  const Answer answer = Ask({"--hosts=node0,node1"});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(
      About(answer, "MTU"),
      testing::ElementsAre(
          "error: MTU: node0 -> node1: small packets get through, but a large transfer stalls."))
      << answer.text;
}

TEST_F(DoctorHostsTest, InterfacesWithDifferentMtus) {
  ASSERT_TRUE(OnHost(1, "ip link set eth0 mtu 1400"));
  const Answer answer = Ask({"--hosts=node0,node1"});
  EXPECT_THAT(
      About(answer, "MTU"),
      testing::Contains(HasSubstr("warning: MTU: node0 -> node1: the interfaces' MTUs differ: 1500 "
                                  "and 1400.")))
      << answer.text;
}

// Two of three hosts are in different rooms.
TEST_F(DoctorHostsTest, TwoHostsThatAreFarFromEachOther) {
  ASSERT_TRUE(OnHost(-1,
                     "ip link set to2 nomaster && ip link add slow type veth peer name slow1 && "
                     "ip link set slow up && ip link set slow1 master hosts up"));
  Command link =
      StartWhereTyped({"python3", "test/e2e/slow_way.py", "to2", "slow", "10.98.0.1", "0.04"});
  ASSERT_TRUE(link.WaitForOut("ready")) << link.err();
  const Answer answer = Ask({"--hosts=node0,node1,node2"});
  EXPECT_THAT(About(answer, "latency"),
              testing::UnorderedElementsAre(
                  HasSubstr("warning: latency: node0 -> node2: a round trip takes "),
                  HasSubstr("warning: latency: node2 -> node0: a round trip takes ")))
      << answer.text;
  EXPECT_GT(answer.links.at("node0 node2")["latency_us"].get<double>(), 80'000);
  link.Signal(SIGTERM);
  link.Wait();
}

TEST_F(DoctorHostsTest, OneHostOnASlowCable) {
  if (!OnHost(3,
              "/usr/sbin/tc qdisc add dev eth0 root tbf rate 20mbit burst 32kbit latency 400ms")) {
    GTEST_SKIP() << "this kernel has no token bucket filter";
  }
  const Answer answer = Ask({"--hosts=node[0-3]"});
  EXPECT_THAT(About(answer, "bandwidth"),
              testing::Contains(HasSubstr("warning: bandwidth: node3 -> node0")))
      << answer.text;
}

// One of three hosts has another clock and another PyTorch, like one with an outdated image.
TEST_F(DoctorHostsTest, OneHostWithAnotherClockAndAnotherPyTorch) {
  const std::string clock = std::filesystem::absolute("test/chaos/libclock_skew.so").string();
  const std::string fresh =
      Write("python_new", "#!/bin/sh\necho Python=3.11.2\necho PyTorch=2.6.0\n", 0755);
  const std::string stale =
      Write("python_old", "#!/bin/sh\necho Python=3.11.2\necho PyTorch=1.13.1\n", 0755);
  const std::string connect =
      Write("connect",
            absl::StrCat("#!/bin/sh\nexport PYTHON_EXEC=", fresh, "\nif [ $1 = node2 ]; then\n",
                         "  export LD_PRELOAD=", clock, " SKEW_S=300 PYTHON_EXEC=", stale, "\nfi\n",
                         "read pid <", Path("hosts/$1.pid"),
                         "\nexec nsenter --target $pid --net --uts sh -c \"$2\"\n"),
            0755);
  const Answer answer =
      Ask({"--hosts=node0,node1,node2", "--launch-with", connect + " {host} {command}"});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.findings,
              testing::Contains(HasSubstr("error: clocks: the clock of node2 is 300 s "
                                          "ahead of the others'.")))
      << answer.text;
  EXPECT_THAT(answer.findings,
              testing::Contains("error: versions: PyTorch differs: 1.13.1 on node2; 2.6.0 "
                                "on node0, node1."));
}

TEST_F(DoctorHostsTest, HostThatIsNotThere) {
  StopSshd(1);
  const Answer answer = Ask({"--hosts=node0,node1,node2"});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(About(answer, "host"),
              testing::ElementsAre(AllOf(HasSubstr("error: node1 host: it cannot be reached: "),
                                         HasSubstr("Connection refused"))))
      << answer.text;
  EXPECT_EQ(answer.links.size(), 2u) << "the others were measured";
  ExpectNothingLeft();
}

// A finding of several hosts is reported once, with their names.
TEST_F(DoctorHostsTest, FindingsNameTheirHosts) {
  const Answer answer = Ask({"--hosts=node0,node1", "--log-dir=/proc/nothing"});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.findings, testing::Contains(HasSubstr(
                                   "error: node0 node1 log directory: nothing can be written to "
                                   "/proc/nothing")))
      << answer.text;
  EXPECT_LE(About(answer, "names").size(), 1u) << "neither name resolves, or both do";
}

TEST_F(DoctorHostsTest, EachHostLooksForTheRendezvous) {
  const Answer answer =
      Ask({"--hosts=node0,node1", "--rdzv-endpoint=10.98.0.254:29400", "--insecure"});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.findings,
              testing::Contains(HasSubstr("error: node0 node1 rendezvous: no connection to "
                                          "10.98.0.254:29400 (10.98.0.254): Connection "
                                          "refused.")))
      << answer.text;
}

}  // namespace
}  // namespace muster::test
