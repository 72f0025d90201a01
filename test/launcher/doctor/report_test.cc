// Both formats of a report.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_split.h"
#include "launcher/doctor/host_survey.h"
#include "launcher/doctor/report.h"

namespace muster::launcher {
namespace {

Report Example() {
  Report report;
  report.findings = {{.severity = Severity::kNote,
                      .subject = "clock",
                      .what = "nobody keeps it right.",
                      .why = "It drifts.",
                      .remedy = "Start chrony.",
                      .hosts = {}},
                     {.severity = Severity::kError,
                      .subject = "shared memory",
                      .what = "/dev/shm has 64 MiB, and this sentence is longer than a line of "
                              "eighty columns has room for.",
                      .why = "NCCL needs it.",
                      .remedy = "Make it larger.",
                      .hosts = {"node0", "node3"}}};
  report.fine = {{"limits", "20000 files"}, {"control group", "allows everything"}};
  report.versions = {{"kernel", "6.1"}};
  SortFindings(report);
  return report;
}

TEST(ReportTextTest, MostSevereFirstAndThenWhatIsFine) {
  EXPECT_EQ(ReportText(Example(), "2 hosts"),
            "2 hosts: 1 error, 1 note\n"
            "\n"
            "error: node0, node3: shared memory: /dev/shm has 64 MiB, and this sentence is\n"
            "       longer than a line of eighty columns has room for.\n"
            "  why: NCCL needs it.\n"
            "  do:  Make it larger.\n"
            "\n"
            "note: clock: nobody keeps it right.\n"
            "  why: It drifts.\n"
            "  do:  Start chrony.\n"
            "\nchecked, no problem:\n"
            "  limits         20000 files\n"
            "  control group  allows everything\n");
  EXPECT_EQ(ReportText(Report{}, "node0"), "node0: no problems found\n");
}

TEST(ReportTextTest, NamesFromTheMachineCannotDriveTheTerminal) {
  Report report;
  report.fine = {{"log directory", "/tmp/\033[31mred\nline"}};
  EXPECT_EQ(ReportText(report, "node0"),
            "node0: no problems found\n\nchecked, no problem:\n  log directory  "
            "/tmp/?[31mred line\n");
}

TEST(ReportJsonTest, ComesBackAsItWas) {
  Report report = Example();
  const base::Json json = ReportJson(report);
  EXPECT_EQ(json["errors"], 1);
  EXPECT_EQ(json["findings"][0]["do"], "Make it larger.");
  const auto back = ReadReport(base::ParseJson(base::JsonText(json)));
  ASSERT_TRUE(back);
  // The caller adds the hosts.
  for (Finding& one : report.findings) one.hosts.clear();
  EXPECT_EQ(*back, report);
}

TEST(ReportJsonTest, AHostIsNotBelieved) {
  EXPECT_FALSE(ReadReport(base::ParseJson("[]")));
  EXPECT_FALSE(ReadReport(base::ParseJson("{\"findings\": []}")));
  const auto odd = ReadReport(base::ParseJson(
      R"({"findings": [1, {"severity": 7, "what": "a\u001bb"}], "fine": 3, "versions": [1]})"));
  ASSERT_TRUE(odd);
  ASSERT_EQ(odd->findings.size(), 1u);
  EXPECT_EQ(odd->findings[0].what, "a?b");
  base::Json many = {{"fine", base::Json::array()}, {"findings", base::Json::array()}};
  for (int i = 0; i < 1000; ++i) many["findings"].push_back({{"what", std::string(5000, 'x')}});
  const auto cut = ReadReport(many);
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->findings.size(), 200u);
  EXPECT_EQ(cut->findings[0].what.size(), 2000u);
}

}  // namespace
}  // namespace muster::launcher
