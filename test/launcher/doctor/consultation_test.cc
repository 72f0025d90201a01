// `muster doctor --hosts`, but for the hosts: what they say goes in.
#include "launcher/doctor/consultation.h"

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

class ConsultationTest : public testing::Test {
 protected:
  // Its findings' texts, and of whom.
  std::vector<std::string> Found() const {
    std::vector<std::string> found;
    for (const Finding& one : consultation_.Result().findings) {
      std::string hosts;
      for (const std::string& host : one.hosts) hosts += host + ": ";
      found.push_back(hosts + one.what);
    }
    return found;
  }

  int keys_ = 0;
  Consultation consultation_{{"a", "b", "c"},
                             [this] { return "key" + std::to_string(1000000000000 + keys_++); }};
};

TEST_F(ConsultationTest, StagesFollowWhenBothEndsHaveSpoken) {
  EXPECT_EQ(consultation_.OnLine(0, Hello("10.0.0.1", 1)), std::nullopt);
  EXPECT_EQ(consultation_.OnLine(2, Hello("10.0.0.3", 3)), std::nullopt);
  auto next = consultation_.OnLine(1, Hello("10.0.0.2", 2));
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
    EXPECT_EQ(consultation_.OnLine(from, "{\"stage\": 77, \"way\": {}}"), std::nullopt) << "late";
    EXPECT_EQ(consultation_.OnLine(from, stage + R"(, "way": {"outcome": 0, "latency_us": 50}})"),
              std::nullopt);
    EXPECT_FALSE(consultation_.is_over());
    next = consultation_.OnLine(to, stage + R"(, "arrival": {"largest_packet": 1500}})");
  }
  EXPECT_EQ(stages, 6);
  EXPECT_EQ(keys_, 6) << "each measurement has a key of its own";
  EXPECT_TRUE(consultation_.is_over());
  EXPECT_EQ(consultation_.ways().measured.size(), 6u);
  EXPECT_EQ(consultation_.ways().measured.at({2, 0}).way.latency_us, 50);
  EXPECT_TRUE(Found().empty());
}

TEST_F(ConsultationTest, HostsThatAreNotThereAreLeftOut) {
  consultation_.OnLine(0, Hello("10.0.0.1", 1));
  consultation_.OnLine(1, Hello("10.0.0.2", 2));
  const auto next = consultation_.OnGone(2, "it cannot be reached: no route");
  ASSERT_TRUE(next);
  EXPECT_EQ(consultation_.stages(), 2u);
  // And one is lost while it measures.
  EXPECT_EQ(consultation_.OnGone(1, "it was lost: broken pipe"), std::nullopt);
  EXPECT_FALSE(consultation_.is_over());
  EXPECT_EQ(consultation_.OnDeadline(), std::nullopt);
  EXPECT_TRUE(consultation_.is_over());
  EXPECT_THAT(Found(), Contains("c: it cannot be reached: no route."));
  EXPECT_THAT(Found(), Contains("b: it was lost: broken pipe."));
  EXPECT_THAT(Found(), Contains("a: it has not answered in time."));
}

TEST_F(ConsultationTest, AlikeFindingsAreOne) {
  const std::string sick =
      R"({"report": {"findings": [{"severity": "error", "subject": "limits", "what": "few files.",)"
      R"( "why": "w", "do": "d"}], "fine": [{"subject": "names", "found": "x"}]}, "address": "",)"
      R"( "port": 0})";
  consultation_.OnLine(0, sick);
  consultation_.OnLine(2, sick);
  EXPECT_EQ(consultation_.OnLine(1, Hello("10.0.0.2", 2)), std::nullopt) << "nobody to meet";
  EXPECT_TRUE(consultation_.is_over());
  EXPECT_THAT(Found(), Contains("a: c: few files."));
  EXPECT_THAT(Found(), Contains(HasSubstr("a: it has no address")));
}

TEST_F(ConsultationTest, WhatMakesNoSenseIsNoAnswer) {
  for (const char* const line :
       {"", "7", "[]", "{", "{\"report\": 3}", "{\"report\": {\"fine\": 1}}"}) {
    EXPECT_EQ(consultation_.OnLine(0, line), std::nullopt) << line;
  }
  // An address that is none is not passed on to the others.
  consultation_.OnLine(1, Hello("evil.example", 80));
  consultation_.OnLine(2, Hello("10.0.0.3", 3));
  EXPECT_FALSE(consultation_.is_over());
  EXPECT_EQ(consultation_.OnLine(0, Hello("10.0.0.1; rm", 1)), std::nullopt);
  EXPECT_TRUE(consultation_.is_over());
}

}  // namespace
}  // namespace muster::launcher
