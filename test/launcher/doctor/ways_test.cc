// Who measures with whom, and what follows from what they have measured.
#include "launcher/doctor/ways.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/doctor/tournament.h"
#include "launcher/doctor/ways_view.h"

namespace muster::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(TournamentTest, EverybodyMeetsEverybodyOnceInEachDirection) {
  for (int count = 0; count <= 17; ++count) {
    std::vector<int> hosts;
    for (int i = 0; i < count; ++i) hosts.push_back(10 + i);
    const std::vector<Stage> stages = Tournament(hosts, 1000);
    std::set<std::pair<int, int>> met;
    for (const Stage& stage : stages) {
      std::set<int> busy;
      for (const Encounter& one : stage) {
        EXPECT_NE(one.from, one.to);
        EXPECT_TRUE(busy.insert(one.from).second && busy.insert(one.to).second)
            << "a host is in two encounters at once";
        EXPECT_TRUE(met.insert({one.from, one.to}).second) << "twice";
      }
    }
    EXPECT_EQ(met.size(), static_cast<std::size_t>(count * std::max(0, count - 1)));
  }
}

TEST(TournamentTest, OfManyHostsEachMeetsSomeOthers) {
  std::vector<int> hosts(1000);
  for (int i = 0; i < 1000; ++i) hosts[static_cast<std::size_t>(i)] = i;
  const std::vector<Stage> stages = Tournament(hosts, 15);
  EXPECT_EQ(stages.size(), 30u);
  std::vector<std::set<int>> others(1000);
  for (const Stage& stage : stages) {
    for (const Encounter& one : stage) others[static_cast<std::size_t>(one.from)].insert(one.to);
  }
  for (const std::set<int>& met : others) EXPECT_EQ(met.size(), 15u);
}

MeasuredWay Good() {
  return {.way = {.outcome = DialOutcome::kConnected,
                  .latency_us = 100,
                  .bytes_per_s = 1e9,
                  .mtu = 1500},
          .arrival = {.largest_packet = 1500, .mtu = 1500}};
}

Ways AllGood(int count) {
  Ways ways;
  for (int from = 0; from < count; ++from) {
    ways.hosts.push_back("node" + std::to_string(from));
    for (int to = 0; to < count; ++to) {
      if (from != to) ways.measured[{from, to}] = Good();
    }
  }
  return ways;
}

std::vector<std::string> FindingsOf(const Ways& ways) {
  Report report;
  Judge(ways, report);
  std::vector<std::string> lines;
  for (const Finding& one : report.findings) {
    EXPECT_FALSE(one.why.empty() || one.remedy.empty()) << one.what;
    lines.push_back(std::string(SeverityWord(one.severity)) + ": " + one.subject + ": " + one.what);
  }
  return lines;
}

TEST(WaysTest, AGoodNetworkHasNoFindings) {
  EXPECT_THAT(FindingsOf(AllGood(4)), IsEmpty());
  EXPECT_THAT(FindingsOf(Ways{}), IsEmpty());
}

TEST(WaysTest, ConnectionsThatDoNotComeAbout) {
  Ways ways = AllGood(2);
  MeasuredWay& bad = ways.measured[{0, 1}];
  bad.way = {.outcome = DialOutcome::kSilent};
  EXPECT_THAT(FindingsOf(ways), ElementsAre("error: firewall: node0 -> node1: nothing comes back "
                                            "when a connection is asked for (packets of UDP do "
                                            "arrive, the other way it works)."));
  bad.way.outcome = DialOutcome::kRefused;
  bad.arrival.largest_packet = 0;
  EXPECT_THAT(FindingsOf(ways), ElementsAre("error: firewall: node0 -> node1: a connection is "
                                            "refused (the other way it works)."));
  bad.way = {.outcome = DialOutcome::kNoRoute, .cause = "No route to host"};
  EXPECT_THAT(FindingsOf(ways), ElementsAre("error: network: node0 -> node1: no connection: No "
                                            "route to host (the other way it works)."));
}

TEST(WaysTest, PacketsThatAreTooLarge) {
  Ways ways = AllGood(2);
  MeasuredWay& bad = ways.measured[{0, 1}];
  bad.way.mtu = bad.arrival.mtu = 9000;
  EXPECT_THAT(FindingsOf(ways), ElementsAre("error: MTU: node0 -> node1: the interfaces send "
                                            "packets of 9000 bytes, and none of more than 1500 "
                                            "arrives."));
  bad.arrival.largest_packet = 0;
  bad.way.stalls = true;
  EXPECT_THAT(FindingsOf(ways), ElementsAre("error: MTU: node0 -> node1: small packets pass, and a "
                                            "large transfer comes to a halt."));
  bad = Good();
  bad.arrival.mtu = 1400;
  EXPECT_THAT(FindingsOf(ways), ElementsAre(HasSubstr("MTUs differ: 1500 and 1400")));
}

TEST(WaysTest, WhatIsSlowIsSaidByRatiosToTheOthers) {
  Ways ways = AllGood(4);
  ways.measured[{2, 3}].way.latency_us = 80000;
  ways.measured[{3, 2}].way.bytes_per_s = 2e6;
  EXPECT_THAT(FindingsOf(ways),
              ElementsAre("warning: latency: node2 -> node3: a round trip takes 80.00 ms; the "
                          "median of all is 0.10 ms.",
                          "warning: bandwidth: node3 -> node2: 0.02 Gbit/s; the median of all is "
                          "8.00."));
}

TEST(WaysTest, ClocksAreHeldAgainstTheMedian) {
  Ways ways = AllGood(4);
  for (auto& [pair, one] : ways.measured) {
    one.way.clock_ahead_s = (pair.second == 2 ? 90 : 0) - (pair.first == 2 ? 90 : 0);
  }
  EXPECT_THAT(FindingsOf(ways),
              ElementsAre("error: clocks: the clock of node2 is 90 s ahead of the "
                          "others'."));
  for (auto& [pair, one] : ways.measured) one.way.clock_ahead_s /= -30;
  EXPECT_THAT(FindingsOf(ways), ElementsAre("warning: clocks: the clock of node2 is 3 s behind the "
                                            "others'."));
}

TEST(WaysTest, VersionsThatDiffer) {
  Report report;
  JudgeDifferences({{"node0", {{"NCCL", "2.20.5"}, {"kernel", "6.1"}, {"glibc", "2.36"}}},
                    {"node1", {{"NCCL", "2.21.5"}, {"kernel", "6.1"}, {"glibc", "2.36"}}},
                    {"node2", {{"kernel", "6.5"}, {"glibc", "2.36"}}}},
                   report);
  ASSERT_EQ(report.findings.size(), 2u);
  EXPECT_EQ(report.findings[0].severity, Severity::kError);
  EXPECT_EQ(report.findings[0].what,
            "NCCL differs: 2.20.5 on node0; 2.21.5 on node1; none on node2.");
  EXPECT_EQ(report.findings[1].severity, Severity::kNote);
  EXPECT_EQ(report.findings[1].what, "kernel differs: 6.1 on node0, node1; 6.5 on node2.");
}

TEST(WaysViewTest, MatrixAndSpread) {
  Ways ways = AllGood(2);
  ways.measured[{1, 0}].way.outcome = DialOutcome::kSilent;
  EXPECT_EQ(WaysText(ways),
            "\nround trips in ms, from the row to the column:\n"
            "       node0  node1\n"
            "node0  .      0.1\n"
            "node1  x      .\n"
            "\nbandwidth in Gbit/s, over one connection:\n"
            "       node0  node1\n"
            "node0  .      8\n"
            "node1  x      .\n");
  EXPECT_THAT(WaysText(AllGood(9)), HasSubstr("round trips, ms:   least 0.1, median 0.1"));
  EXPECT_EQ(WaysText(Ways{}), "");
}

TEST(WayJsonTest, AHostIsNotBelieved) {
  const Way odd = ReadWay(base::ParseJson(
      R"({"outcome": 77, "cause": "a\u0007b", "latency_us": -5, "bytes_per_s": 1e300})"));
  EXPECT_EQ(odd.outcome, DialOutcome::kFailed);
  EXPECT_EQ(odd.cause, "a?b");
  EXPECT_EQ(odd.latency_us, 0);
  EXPECT_EQ(odd.bytes_per_s, 0);
  EXPECT_EQ(ReadWay(base::ParseJson("3")).outcome, DialOutcome::kFailed);
  const Way good = Good().way;
  EXPECT_EQ(ReadWay(WayJson(good)).bytes_per_s, good.bytes_per_s);
  EXPECT_EQ(ReadArrival(ArrivalJson(Good().arrival)).largest_packet, 1500);
}

}  // namespace
}  // namespace muster::launcher
