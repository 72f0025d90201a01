// Which hosts measure each other, and what follows from the measurements.
#include "launcher/doctor/link_measurement.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/commands/doctor.h"
#include "launcher/doctor/host_survey.h"

namespace muster::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(PairingScheduleTest, EverybodyMeetsEverybodyOnceInEachDirection) {
  for (int count = 0; count <= 17; ++count) {
    std::vector<int> hosts;
    for (int i = 0; i < count; ++i) hosts.push_back(10 + i);
    const std::vector<Stage> stages = PairingSchedule(hosts, 1000);
    std::set<std::pair<int, int>> met;
    for (const Stage& stage : stages) {
      std::set<int> busy;
      for (const Pairing& one : stage) {
        EXPECT_NE(one.from, one.to);
        EXPECT_TRUE(busy.insert(one.from).second && busy.insert(one.to).second)
            << "a host is in two encounters at once";
        EXPECT_TRUE(met.insert({one.from, one.to}).second) << "twice";
      }
    }
    EXPECT_EQ(met.size(), static_cast<std::size_t>(count * std::max(0, count - 1)));
  }
}

TEST(PairingScheduleTest, OfManyHostsEachMeetsSomeOthers) {
  std::vector<int> hosts(1000);
  for (int i = 0; i < 1000; ++i) hosts[static_cast<std::size_t>(i)] = i;
  const std::vector<Stage> stages = PairingSchedule(hosts, 15);
  EXPECT_EQ(stages.size(), 30u);
  std::vector<std::set<int>> others(1000);
  for (const Stage& stage : stages) {
    for (const Pairing& one : stage) others[static_cast<std::size_t>(one.from)].insert(one.to);
  }
  for (const std::set<int>& met : others) EXPECT_EQ(met.size(), 15u);
}

MeasuredLink Good() {
  return {.link = {.outcome = DialOutcome::kConnected,
                   .latency_us = 100,
                   .bytes_per_s = 1e9,
                   .mtu = 1500},
          .arrival = {.largest_packet = 1500, .mtu = 1500}};
}

LinkMeasurements AllGood(int count) {
  LinkMeasurements links;
  for (int from = 0; from < count; ++from) {
    links.hosts.push_back("node" + std::to_string(from));
    for (int to = 0; to < count; ++to) {
      if (from != to) links.measured[{from, to}] = Good();
    }
  }
  return links;
}

std::vector<std::string> FindingsOfLinks(const LinkMeasurements& links) {
  Report report;
  Judge(links, report);
  std::vector<std::string> lines;
  for (const Finding& one : report.findings) {
    EXPECT_FALSE(one.why.empty() || one.remedy.empty()) << one.what;
    lines.push_back(std::string(SeverityWord(one.severity)) + ": " + one.subject + ": " + one.what);
  }
  return lines;
}

TEST(LinkMeasurementTest, AGoodNetworkHasNoFindings) {
  EXPECT_THAT(FindingsOfLinks(AllGood(4)), IsEmpty());
  EXPECT_THAT(FindingsOfLinks(LinkMeasurements{}), IsEmpty());
}

TEST(LinkMeasurementTest, ConnectionsThatDoNotComeAbout) {
  LinkMeasurements links = AllGood(2);
  MeasuredLink& bad = links.measured[{0, 1}];
  bad.link = {.outcome = DialOutcome::kSilent};
  EXPECT_THAT(FindingsOfLinks(links),
              ElementsAre("error: firewall: node0 -> node1: connection attempts get no reply (UDP "
                          "packets do arrive, the other direction works)."));
  bad.link.outcome = DialOutcome::kRefused;
  bad.arrival.largest_packet = 0;
  EXPECT_THAT(FindingsOfLinks(links),
              ElementsAre("error: firewall: node0 -> node1: a connection is "
                          "refused (the other direction works)."));
  bad.link = {.outcome = DialOutcome::kNoRoute, .cause = "No route to host"};
  EXPECT_THAT(FindingsOfLinks(links),
              ElementsAre("error: network: node0 -> node1: no connection: No "
                          "route to host (the other direction works)."));
}

TEST(LinkMeasurementTest, PacketsThatAreTooLarge) {
  LinkMeasurements links = AllGood(2);
  MeasuredLink& bad = links.measured[{0, 1}];
  bad.link.mtu = bad.arrival.mtu = 9000;
  EXPECT_THAT(FindingsOfLinks(links),
              ElementsAre("error: MTU: node0 -> node1: the interfaces send "
                          "packets of 9000 bytes, and none of more than 1500 "
                          "arrives."));
  bad.arrival.largest_packet = 0;
  bad.link.stalls = true;
  EXPECT_THAT(
      FindingsOfLinks(links),
      ElementsAre(
          "error: MTU: node0 -> node1: small packets get through, but a large transfer stalls."));
  bad = Good();
  bad.arrival.mtu = 1400;
  EXPECT_THAT(FindingsOfLinks(links), ElementsAre(HasSubstr("MTUs differ: 1500 and 1400")));
}

TEST(LinkMeasurementTest, WhatIsSlowIsSaidByRatiosToTheOthers) {
  LinkMeasurements links = AllGood(4);
  links.measured[{2, 3}].link.latency_us = 80000;
  links.measured[{3, 2}].link.bytes_per_s = 2e6;
  EXPECT_THAT(FindingsOfLinks(links),
              ElementsAre("warning: latency: node2 -> node3: a round trip takes 80.00 ms; the "
                          "median of all is 0.10 ms.",
                          "warning: bandwidth: node3 -> node2: 0.02 Gbit/s; the median of all is "
                          "8.00."));
}

TEST(LinkMeasurementTest, ClocksAreHeldAgainstTheMedian) {
  LinkMeasurements links = AllGood(4);
  for (auto& [pair, one] : links.measured) {
    one.link.clock_ahead_s = (pair.second == 2 ? 90 : 0) - (pair.first == 2 ? 90 : 0);
  }
  EXPECT_THAT(FindingsOfLinks(links),
              ElementsAre("error: clocks: the clock of node2 is 90 s ahead of the "
                          "others'."));
  for (auto& [pair, one] : links.measured) one.link.clock_ahead_s /= -30;
  EXPECT_THAT(FindingsOfLinks(links),
              ElementsAre("warning: clocks: the clock of node2 is 3 s behind the "
                          "others'."));
}

TEST(LinkMeasurementTest, VersionsThatDiffer) {
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
  LinkMeasurements links = AllGood(2);
  links.measured[{1, 0}].link.outcome = DialOutcome::kSilent;
  EXPECT_EQ(LinksText(links),
            "\nround trips in ms, from the row to the column:\n"
            "       node0  node1\n"
            "node0  .      0.1\n"
            "node1  x      .\n"
            "\nbandwidth in Gbit/s, over one connection:\n"
            "       node0  node1\n"
            "node0  .      8\n"
            "node1  x      .\n");
  EXPECT_THAT(LinksText(AllGood(9)), HasSubstr("round trips, ms:   least 0.1, median 0.1"));
  EXPECT_EQ(LinksText(LinkMeasurements{}), "");
}

TEST(WayJsonTest, AHostIsNotBelieved) {
  const LinkMeasurement odd = ReadLinkMeasurement(base::ParseJson(
      R"({"outcome": 77, "cause": "a\u0007b", "latency_us": -5, "bytes_per_s": 1e300})"));
  EXPECT_EQ(odd.outcome, DialOutcome::kFailed);
  EXPECT_EQ(odd.cause, "a?b");
  EXPECT_EQ(odd.latency_us, 0);
  EXPECT_EQ(odd.bytes_per_s, 0);
  EXPECT_EQ(ReadLinkMeasurement(base::ParseJson("3")).outcome, DialOutcome::kFailed);
  const LinkMeasurement good = Good().link;
  EXPECT_EQ(ReadLinkMeasurement(LinkMeasurementJson(good)).bytes_per_s, good.bytes_per_s);
  EXPECT_EQ(ReadArrival(ArrivalJson(Good().arrival)).largest_packet, 1500);
}

}  // namespace
}  // namespace muster::launcher
