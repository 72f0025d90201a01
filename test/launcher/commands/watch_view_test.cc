// What `muster status --watch` prints of an update, and how it is put in the place of the one
// before.
#include "launcher/commands/watch_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace muster::launcher {
namespace {

using rendezvous::JobSnapshot;
using rendezvous::VerdictKind;
using rendezvous::WatchedJobs;
using ::testing::HasSubstr;
using Json = nlohmann::json;

const WatchedJobs kEnded{.ended = {{.run_id = "job7",
                                    .kind = VerdictKind::kWorkerFailed,
                                    .sentence = "rank 1 on host b exited with code 3"}}};

TEST(WatchViewTest, PeopleReadTables) {
  EXPECT_EQ(WatchText({}, false), "no jobs\n");
  EXPECT_EQ(WatchText(kEnded, false),
            "ENDED  HOW            MESSAGE\n"
            "job7   worker_failed  rank 1 on host b exited with code 3\n");
  WatchedJobs both = kEnded;
  both.jobs = {JobSnapshot{.run_id = "job8"}};
  EXPECT_THAT(WatchText(both, false), HasSubstr("job8  gathering"));
  EXPECT_THAT(WatchText(both, false), HasSubstr("\n\nENDED  HOW"));
  EXPECT_THAT(WatchText(both, true), HasSubstr("\n\nHOST  NODE"));
}

TEST(WatchViewTest, ProgramsReadAnObjectInALine) {
  WatchedJobs both = kEnded;
  both.jobs = {JobSnapshot{.run_id = "job8"}};
  const std::string line = WatchJson(both);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const Json change = Json::parse(line);
  EXPECT_EQ(change["jobs"][0]["run_id"], "job8");
  EXPECT_EQ(change["ended"], Json::parse(R"([{"run_id": "job7", "outcome": "worker_failed",
                                             "message": "rank 1 on host b exited with code 3"}])"));
  EXPECT_EQ(WatchJson({}), "{\"jobs\":[],\"ended\":[]}\n");
}

TEST(RedrawingTest, TextTakesThePlaceOfTheOneBefore) {
  Redrawing redrawing;
  EXPECT_EQ(redrawing.Draw("one\ntwo\n", {80, 24}), "\rone\ntwo\n");
  EXPECT_EQ(redrawing.Draw("1\n", {80, 24}), "\r\x1b[2A\x1b[J1\n");
  EXPECT_EQ(redrawing.Draw("2\n", {80, 24}), "\r\x1b[1A\x1b[J2\n");
}

// A line that the terminal breaks would be two, and those above it would stay on the screen.
TEST(RedrawingTest, WhatTheTerminalHasNoRoomForIsLeftOut) {
  Redrawing redrawing;
  EXPECT_EQ(redrawing.Draw("größer\n", {3, 24}), "\rgrö\n");
  EXPECT_EQ(redrawing.Draw("1\n2\n3\n4\n5\n", {40, 4}), "\x1b[H\x1b[2J1\n2\n... and 3 more lines\n")
      << "another width";
  EXPECT_EQ(redrawing.Draw("1\n2\n3\n", {40, 4}), "\r\x1b[3A\x1b[J1\n2\n3\n");
}

}  // namespace
}  // namespace muster::launcher
