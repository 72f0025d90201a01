// `muster doctor --hosts` without hosts: their lines go in.
#include "launcher/doctor/host_survey.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::launcher {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr char kNoFindings[] = R"("report": {"findings": [], "fine": [], "versions": {}})";

std::string Hello(const std::string& address, int port) {
  return std::string("{") + kNoFindings + R"(, "address": ")" + address + R"(", "port": )" +
         std::to_string(port) + "}";
}

class HostSurveyTest : public testing::Test {
 protected:
  // The findings' texts, with their hosts.
  std::vector<std::string> Found() const {
    std::vector<std::string> found;
    for (const Finding& one : host_survey_.Result().findings) {
      std::string hosts;
      for (const std::string& host : one.hosts) hosts += host + ": ";
      found.push_back(hosts + one.what);
    }
    return found;
  }

  int keys_ = 0;
  HostSurvey host_survey_{{"a", "b", "c"},
                          [this] { return "key" + std::to_string(1000000000000 + keys_++); }};
};

TEST_F(HostSurveyTest, StagesFollowWhenBothEndsHaveSpoken) {
  EXPECT_EQ(host_survey_.OnLine(0, Hello("10.0.0.1", 1)), std::nullopt);
  EXPECT_EQ(host_survey_.OnLine(2, Hello("10.0.0.3", 3)), std::nullopt);
  auto next = host_survey_.OnLine(1, Hello("10.0.0.2", 2));
  int stages = 0;
  while (next) {
    ++stages;
    const base::Json json = base::ParseJson(*next);
    ASSERT_EQ(json["stage"], stages);
    ASSERT_EQ(json["encounters"].size(), 1u) << "of three hosts one waits";
    const int from = json["encounters"][0]["from"].get<int>();
    const int to = json["encounters"][0]["to"].get<int>();
    EXPECT_EQ(json["encounters"][0]["address"], "10.0.0." + std::to_string(to + 1));
    EXPECT_EQ(json["encounters"][0]["port"], to + 1);
    const std::string stage = "{\"stage\": " + std::to_string(stages);
    EXPECT_EQ(host_survey_.OnLine(from, "{\"stage\": 77, \"link\": {}}"), std::nullopt) << "late";
    EXPECT_EQ(host_survey_.OnLine(from, stage + R"(, "link": {"outcome": 0, "latency_us": 50}})"),
              std::nullopt);
    EXPECT_FALSE(host_survey_.is_over());
    next = host_survey_.OnLine(to, stage + R"(, "arrival": {"largest_packet": 1500}})");
  }
  EXPECT_EQ(stages, 6);
  EXPECT_EQ(keys_, 6) << "each measurement has a key of its own";
  EXPECT_TRUE(host_survey_.is_over());
  EXPECT_EQ(host_survey_.links().measured.size(), 6u);
  EXPECT_EQ(host_survey_.links().measured.at({2, 0}).link.latency_us, 50);
  EXPECT_TRUE(Found().empty());
}

TEST_F(HostSurveyTest, HostsThatAreNotThereAreLeftOut) {
  host_survey_.OnLine(0, Hello("10.0.0.1", 1));
  host_survey_.OnLine(1, Hello("10.0.0.2", 2));
  const auto next = host_survey_.OnGone(2, "it cannot be reached: no route");
  ASSERT_TRUE(next);
  EXPECT_EQ(host_survey_.stages(), 2u);
  // And one is lost during a measurement.
  EXPECT_EQ(host_survey_.OnGone(1, "it was lost: broken pipe"), std::nullopt);
  EXPECT_FALSE(host_survey_.is_over());
  EXPECT_EQ(host_survey_.OnDeadline(), std::nullopt);
  EXPECT_TRUE(host_survey_.is_over());
  EXPECT_THAT(Found(), Contains("c: it cannot be reached: no route."));
  EXPECT_THAT(Found(), Contains("b: it was lost: broken pipe."));
  EXPECT_THAT(Found(), Contains("a: it has not answered in time."));
}

TEST_F(HostSurveyTest, AlikeFindingsAreOne) {
  const std::string sick =
      R"({"report": {"findings": [{"severity": "error", "subject": "limits", "what": "few files.",)"
      R"( "why": "w", "do": "d"}], "fine": [{"subject": "names", "found": "x"}]}, "address": "",)"
      R"( "port": 0})";
  host_survey_.OnLine(0, sick);
  host_survey_.OnLine(2, sick);
  EXPECT_EQ(host_survey_.OnLine(1, Hello("10.0.0.2", 2)), std::nullopt) << "nobody to meet";
  EXPECT_TRUE(host_survey_.is_over());
  EXPECT_THAT(Found(), Contains("a: c: few files."));
  EXPECT_THAT(Found(), Contains(HasSubstr("a: it has no address")));
}

TEST_F(HostSurveyTest, WhatMakesNoSenseIsNoAnswer) {
  for (const char* const line :
       {"", "7", "[]", "{", "{\"report\": 3}", "{\"report\": {\"fine\": 1}}"}) {
    EXPECT_EQ(host_survey_.OnLine(0, line), std::nullopt) << line;
  }
  // An invalid address is not passed to the others.
  host_survey_.OnLine(1, Hello("evil.example", 80));
  host_survey_.OnLine(2, Hello("10.0.0.3", 3));
  EXPECT_FALSE(host_survey_.is_over());
  EXPECT_EQ(host_survey_.OnLine(0, Hello("10.0.0.1; rm", 1)), std::nullopt);
  EXPECT_TRUE(host_survey_.is_over());
}

}  // namespace
}  // namespace muster::launcher
