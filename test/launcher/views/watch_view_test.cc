// What `muster status --watch` prints of an update.
#include "launcher/views/status_view.h"

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

const absl::TimeZone kUtc = absl::UTCTimeZone();
const WatchedJobs kEnded{.ended = {{.run_id = "job7",
                                    .kind = VerdictKind::kWorkerFailed,
                                    .sentence = "rank 1 on host b exited with code 3"}}};

TEST(WatchViewTest, PeopleReadTables) {
  EXPECT_EQ(WatchText({}, false, kUtc), "no jobs\n");
  EXPECT_EQ(WatchText(kEnded, false, kUtc),
            "ENDED  HOW     MESSAGE\n"
            "job7   failed  rank 1 on host b exited with code 3\n");
  WatchedJobs both = kEnded;
  both.jobs = {JobSnapshot{.run_id = "job8"}};
  EXPECT_THAT(WatchText(both, false, kUtc), HasSubstr("job8  gathering"));
  EXPECT_THAT(WatchText(both, false, kUtc), HasSubstr("\n\nENDED  HOW"));
}

// "With --watch I saw neither how far the ranks were nor, in the end, which one had failed and
// why."
TEST(WatchViewTest, OneJobIsShownAsStatusShowsIt) {
  WatchedJobs both = kEnded;
  both.jobs = {JobSnapshot{.run_id = "job8"}};
  both.jobs.front().nodes = {{.node = {.host = "a", .slots = 1}}};
  both.jobs.front().nodes.front().ranks = {{.rank = 0, .told = {.step = 1213, .loss = 2.31}}};
  both.jobs.front().failure = {.rank = 0, .host = "a", .what = "exited with code 3"};
  const std::string text = WatchText(both, true, kUtc);
  EXPECT_EQ(text.substr(0, text.find("\nENDED")), JobText(both.jobs.front(), kUtc));
  EXPECT_THAT(text, HasSubstr("\n\nHOST  NODE"));
  EXPECT_THAT(text, HasSubstr("\n\nRANK  HOST  STEP  LOSS"));
  EXPECT_THAT(text, HasSubstr("0     a     1213"));
  EXPECT_THAT(text, HasSubstr("\n\nFirst failure:"));
  EXPECT_THAT(text, HasSubstr("\n\nENDED  HOW"));
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

}  // namespace
}  // namespace muster::launcher
