// What a daemon answers over HTTP is as docs/observing/openapi.json says, refusals included.
#include <chrono>
#include <limits>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "rendezvous/identity/token.h"
#include "rendezvous/pages/job_view.h"
#include "test/rendezvous/pages/description.h"
#include "test/rendezvous/pages/pages_fixture.h"

namespace muster::rendezvous {
namespace {

using base::Json;

using DescriptionTest = PagesFixture;

TEST_F(DescriptionTest, AnswersAreAsTheirDescriptionSays) {
  const Json api = Description();
  const auto pages = Open(Credentials::Plaintext());
  const auto described = [&](const std::string& path, const char* described_as) {
    return Objection(Ask(*pages, path), described_as, api);
  };
  EXPECT_EQ(described("/api/v1/jobs", "/api/v1/jobs"), "");
  const AgentId agent = Join();
  EXPECT_EQ(described("/api/v1/jobs", "/api/v1/jobs"), "");
  server_.daemon_loop().Hear(
      agent, WorkersExited{round_, {.succeeded = false, .failure = WorkerFailure{.exit_code = 3}}});
  EXPECT_EQ(described("/api/v1/jobs/job", "/api/v1/jobs/{run_id}"), "");
  EXPECT_EQ(described("/api/v1/jobs/none", "/api/v1/jobs/{run_id}"), "");
  Fail(Join());
  EXPECT_EQ(described("/api/v1/jobs", "/api/v1/jobs"), "");
  EXPECT_EQ(described("/api/v1/jobs/job", "/api/v1/jobs/{run_id}"), "");
  const JobSnapshot told{
      .run_id = "j",
      .nodes = {{.heard_ago = std::chrono::seconds(1),
                 .ranks = {{.rank = 3,
                            .told = {.step = 7,
                                     .loss = std::numeric_limits<double>::quiet_NaN(),
                                     .samples_per_second = 64,
                                     .step_seconds = 0.1,
                                     .phases = {{"data", 0.01}, {"wait", 0.09, true}}},
                            .straggling = Straggling{0.5, "data"}},
                           {.rank = 4}},
                 .alerts = {{.rank = 3,
                             .told = {.kind = RankAlertKind::kSilent, .what = "gave no sign"}}}}}};
  EXPECT_EQ(Objection(ToJson(told), api["components"]["schemas"]["Job"], api, "job"), "");
  for (const char* const path : {"/metrics", "/healthz", "/readyz", "/api/v1/events"}) {
    EXPECT_EQ(described(path, path), "");
  }
  EXPECT_EQ(Objection(Json{{"error", 1}}, api["components"]["schemas"]["Error"], api, "x"),
            "x.error is of another type");
}

TEST_F(DescriptionTest, RefusalsAreAsTheirDescriptionSays) {
  const Json api = Description();
  const std::map<std::string, std::string> paths = {
      {"/metrics", "/metrics"},
      {"/api/v1/events", "/api/v1/events"},
      {"/api/v1/jobs", "/api/v1/jobs"},
      {"/api/v1/jobs/job", "/api/v1/jobs/{run_id}"},
      {"/api/v1/jobs/job/logs", "/api/v1/jobs/{run_id}/logs"}};
  const Token token = Token::Random();
  const auto guarded = Open(Credentials::FromToken(token, Role::kTool));
  const auto open = Open(Credentials::Plaintext());
  for (const auto& [path, described_as] : paths) {
    const HttpAnswer unknown = Ask(*guarded, path);
    EXPECT_EQ(unknown.status, 401) << path;
    EXPECT_EQ(Objection(unknown, described_as, api), "");
    const HttpAnswer foreign = open->AnswerTo({.path = path, .bearer = "", .host = "x.example"});
    EXPECT_EQ(foreign.status, 403) << path;
    EXPECT_EQ(Objection(foreign, described_as, api), "");
  }
  const auto logs = [&](const std::string& query, const std::string& bearer) {
    return guarded->AnswerTo({.path = "/api/v1/jobs/job/logs", .query = query, .bearer = bearer});
  };
  for (const HttpAnswer& answer :
       {logs("", token.Text()), logs("rank=0", token.ForMetrics().Text())}) {
    EXPECT_EQ(Objection(answer, "/api/v1/jobs/{run_id}/logs", api), "") << answer.status;
  }
  server_.Drain("it ends", [] {});
  EXPECT_EQ(Ask(*open, "/readyz").status, 503);
  EXPECT_EQ(Objection(Ask(*open, "/readyz"), "/readyz", api), "");
}

}  // namespace
}  // namespace muster::rendezvous
