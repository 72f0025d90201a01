// What a daemon answers over HTTP, and to whom, from its first node to the end of a job.
#include "rendezvous/server/daemon_pages.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/host_name.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "base/json.h"
#include "rendezvous/identity/keyring.h"
#include "rendezvous/identity/token.h"
#include "test/rendezvous/pages/description.h"
#include "test/rendezvous/pages/pages_fixture.h"
#include "test/rendezvous/support/join_request.h"
#include "test/support/run_until.h"
#include "test/support/temp_dir.h"

namespace muster::rendezvous {
namespace {

using base::Json;
using boost::asio::ip::tcp;
using ::testing::HasSubstr;
using ::testing::Not;

using DaemonPagesTest = PagesFixture;

TEST_F(DaemonPagesTest, WhoHasNoTokenIsToldNothingButThatItIsHealthy) {
  const Token token = Token::Random();
  const auto pages = Open(Credentials::FromToken(token, Role::kTool));
  Join();
  for (const std::string& bearer : {std::string(), std::string("x"), Token::Random().Text(),
                                    Token::Random().ForMetrics().Text()}) {
    for (const char* const path : {"/metrics", "/api/v1/jobs", "/api/v1/jobs/job"}) {
      const HttpAnswer answer = Ask(*pages, path, bearer);
      EXPECT_EQ(answer.status, 401) << path;
      EXPECT_THAT(answer.body, Not(HasSubstr("'job'")));
    }
    EXPECT_EQ(Ask(*pages, "/healthz", bearer).body, "ok\n");
    EXPECT_EQ(Ask(*pages, "/readyz", bearer).status, 200);
  }
  for (const std::string& bearer : {token.Text(), token.ForMetrics().Text()}) {
    EXPECT_EQ(Ask(*pages, "/metrics", bearer).status, 200);
    EXPECT_EQ(Json::parse(Ask(*pages, "/api/v1/jobs", bearer).body)[0]["run_id"], "job");
  }
}

// A web page whose owner let its name mean the reader's own machine could read the jobs there.
TEST_F(DaemonPagesTest, WithoutATokenWhoAsksForAForeignNameIsToldNothing) {
  const auto pages = Open(Credentials::Plaintext());
  Join();
  const auto status = [&](const std::string& host) {
    return pages->AnswerTo({.path = "/api/v1/jobs", .bearer = "", .host = host}).status;
  };
  const std::string own = boost::asio::ip::host_name();
  for (const std::string& host : {std::string(), std::string("127.0.0.1"), std::string("[::1]"),
                                  std::string("LOCALHOST"), own}) {
    EXPECT_EQ(status(host), 200) << host;
  }
  // The last is what an attacker tries who has guessed how this machine is called.
  for (const std::string& host : {std::string("rebound.example.org"), std::string("["),
                                  std::string("127.0.0.1.example.org"), own + ".example.org"}) {
    EXPECT_EQ(status(host), 403) << host;
  }
  EXPECT_EQ(pages->AnswerTo({.path = "/healthz", .bearer = "", .host = "x.example.org"}).status,
            200);
}

// Only plain words were names, so no name needed an escape; and a job that is called ".." has no
// path of its own in a browser.
TEST_F(DaemonPagesTest, JobOfAnyNameIsFoundByItsEscapedName) {
  const auto pages = Open(Credentials::Plaintext());
  const struct {
    std::string name;
    std::string path;
  } cases[] = {{"my job", "my%20job"},
               {"team/exp", "team%2Fexp"},
               {"x/logs", "x%2Flogs"},
               {"..", "..;"},
               {"a;", "a%3B"},
               {"100%", "100%25"},
               {"größe", "gr%C3%B6%C3%9Fe"},
               {"a\u202eb", "a%E2%80%AEb"},
               {"job10", "job10"},
               {"job9", "job9"}};
  for (const auto& each : cases) {
    const AgentId agent = server_.daemon_loop().Attach([](const Directive&) {});
    JoinRequest request = RequestFor(1, 1);
    request.run_id = each.name;
    request.settings.lease = Duration::zero();
    server_.daemon_loop().Hear(agent, request);
    const HttpAnswer answer = Ask(*pages, "/api/v1/jobs/" + each.path);
    ASSERT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(Json::parse(answer.body)["run_id"], each.name);
    EXPECT_THAT(answer.body, Not(HasSubstr("\u202e"))) << "it is escaped, for who reads it by curl";
  }
  const Json all = Json::parse(Ask(*pages, "/api/v1/jobs").body);
  std::vector<std::string> names;
  for (const Json& job : all) names.push_back(job["run_id"]);
  const auto at = [&names](const char* name) {
    return std::find(names.begin(), names.end(), name) - names.begin();
  };
  EXPECT_LT(at("job9"), at("job10")) << "in the order in which people list them";
}

TEST_F(DaemonPagesTest, RestartIsShownWithItsCauseAndItsCost) {
  const auto pages = Open(Credentials::Plaintext());
  const AgentId agent = Join();
  server_.daemon_loop().Hear(agent, WorkersStarted{round_});
  server_.daemon_loop().Hear(
      agent, WorkersExited{round_,
                           {.succeeded = false,
                            .failure = WorkerFailure{
                                .rank = 0, .exit_code = 3, .what = "exited with code 3"}}});
  const Json job = Json::parse(Ask(*pages, "/api/v1/jobs/%6Aob").body);
  EXPECT_EQ(job["restarts"], 1);
  ASSERT_EQ(job["rounds"].size(), 2u);
  EXPECT_EQ(job["rounds"][0]["end"], "worker_failed");
  EXPECT_EQ(job["rounds"][0]["failed_rank"], 0);
  EXPECT_THAT(job["rounds"][0]["reason"].get<std::string>(), HasSubstr("exited with code 3"));
  EXPECT_EQ(job["rounds"][1]["end"], nullptr);
  EXPECT_EQ(job["rounds"][1]["gathered_seconds"], nullptr) << "its node has not joined again";
  const std::string metrics = Ask(*pages, "/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("muster_rounds_started_total 1\n"));
  EXPECT_THAT(metrics, HasSubstr("muster_rounds_over_total{cause=\"worker_failed\"} 1\n"));
  EXPECT_THAT(metrics, HasSubstr("muster_gathering_seconds_count 1\n"));
  EXPECT_THAT(metrics, HasSubstr("muster_detection_seconds_count{failed=\"worker\"} 1\n"));
  EXPECT_THAT(metrics, HasSubstr("muster_detection_seconds_count{failed=\"node\"} 0\n"));
  EXPECT_THAT(metrics, HasSubstr("muster_recovery_seconds_count 0\n"));
  EXPECT_THAT(metrics, HasSubstr("muster_job_restarts{run_id=\"job\"} 1\n"));
}

// The job's last node had left, and nothing of it was shown any more.
TEST_F(DaemonPagesTest, JobThatHasFailedIsShownWithItsFailure) {
  const auto pages = Open(Credentials::Plaintext());
  Fail(Join());
  const Json jobs = Json::parse(Ask(*pages, "/api/v1/jobs").body);
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0]["state"], "ended");
  EXPECT_EQ(jobs[0]["outcome"], "worker_failed");
  EXPECT_TRUE(jobs[0]["ended_seconds_ago"].is_number());
  EXPECT_EQ(jobs[0]["rounds"].size(), 1u);
  EXPECT_EQ(jobs[0]["failure"], nullptr);
  const Json job = Json::parse(Ask(*pages, "/api/v1/jobs/job").body);
  EXPECT_EQ(job["failure"]["exit_code"], 3);
  EXPECT_EQ(job["failure"]["stderr"], "no such layer");
  EXPECT_THAT(Ask(*pages, "/metrics").body, HasSubstr("muster_jobs{state=\"ended\"} 1\n"));
  EXPECT_THAT(Ask(*pages, "/metrics").body, Not(HasSubstr("muster_job_restarts{job=\"job\"}")));

  Join();
  const Json again = Json::parse(Ask(*pages, "/api/v1/jobs").body);
  ASSERT_EQ(again.size(), 1u) << "the next of that name takes its place";
  EXPECT_EQ(again[0]["state"], "running");
  EXPECT_EQ(again[0]["outcome"], nullptr);
}

// The agent has printed "1\n2\n" and an escape on stdout.
TEST_F(DaemonPagesTest, LastLinesOfARankAreShownToWhoMayReadThem) {
  const Token token = Token::Random();
  const auto pages = Open(Credentials::FromToken(token, Role::kTool));
  std::optional<LogWanted> wanted;
  const AgentId agent = server_.daemon_loop().Attach([&wanted](const Directive& directive) {
    if (const auto* asked = std::get_if<LogWanted>(&directive)) wanted = *asked;
  });
  JoinRequest request = RequestFor(1, 1);
  request.node.delivers_logs = true;
  server_.daemon_loop().Hear(agent, request);
  const auto ask = [&](const std::string& query, const std::string& bearer) {
    return pages->AnswerTo({.path = "/api/v1/jobs/job/logs", .query = query, .bearer = bearer});
  };
  EXPECT_EQ(ask("rank=0", "").status, 401);
  EXPECT_EQ(ask("rank=0", token.ForMetrics().Text()).status, 403);
  EXPECT_EQ(ask("", token.Text()).status, 400);
  EXPECT_EQ(ask("rank=x", token.Text()).status, 400);
  EXPECT_EQ(ask("line=1", token.Text()).status, 400);

  std::optional<HttpAnswer> answer;
  const auto reply = [&answer](HttpAnswer later) { answer = std::move(later); };
  const auto held = ask("rank=0&tail=2", token.Text()).later(reply);
  ASSERT_TRUE(test::RunUntil(io_, [&] { return wanted.has_value(); }));
  EXPECT_EQ(wanted->extent, (LogExtent{.tail = 2}));
  LogExchange& logs = server_.daemon_loop().logs();
  int reads = 0;
  ASSERT_TRUE(logs.OpenDelivery(wanted->delivery, {.read =
                                                       [&] {
                                                         const LogDeliveryId id = wanted->delivery;
                                                         if (reads++ > 0) {
                                                           return logs.Ended(id, absl::OkStatus());
                                                         }
                                                         logs.Brought(
                                                             id, LogText{.bytes = "1\n\0332\n"});
                                                       },
                                                   .end = [] {}}));
  ASSERT_TRUE(test::RunUntil(io_, [&] { return answer.has_value(); }));
  EXPECT_EQ(answer->status, 200);
  const Json json = Json::parse(answer->body);
  EXPECT_EQ(json["text"], "1\n?2\n");
  EXPECT_EQ(json["round"], 0);
  EXPECT_EQ(json["notices"].size(), 0u);
  EXPECT_EQ(Objection(*answer, "/api/v1/jobs/{run_id}/logs", Description()), "");

  answer.reset();
  const auto none = ask("rank=7", token.Text()).later(reply);
  ASSERT_TRUE(test::RunUntil(io_, [&] { return answer.has_value(); }));
  EXPECT_EQ(answer->status, 404);
  EXPECT_THAT(answer->body, HasSubstr("and no rank 7"));
  EXPECT_EQ(Objection(*answer, "/api/v1/jobs/{run_id}/logs", Description()), "");

  // Who has gone is read for no longer.
  auto gone = ask("rank=0", token.Text()).later(reply);
  gone.reset();
  EXPECT_FALSE(logs.OpenDelivery(wanted->delivery, {.read = [] {}, .end = [] {}}));
}

TEST_F(DaemonPagesTest, StepsAreShownAndWatchersHearOfThemSoon) {
  const auto pages = Open(Credentials::Plaintext());
  const AgentId agent = Join();
  server_.daemon_loop().Hear(agent, WorkersStarted{round_});
  tcp::socket stream(io_);
  stream.connect({boost::asio::ip::make_address("127.0.0.1"), pages->port()});
  stream.send(boost::asio::buffer(std::string("GET /api/v1/events HTTP/1.1\r\n\r\n")));
  ASSERT_TRUE(test::RunUntil(io_, [&] { return stream.available() > 0; }));
  RankProgress told{.step = 12,
                    .loss = 2.5,
                    .samples_per_second = 64,
                    .phases = {{"data", 0.25}, {"wait", 0.5, true}},
                    .timed_steps = 12};
  server_.daemon_loop().Hear(agent, KeepAlive{.progress = {round_, {told}}});
  const Json rank = Json::parse(Ask(*pages, "/api/v1/jobs/job").body)["nodes"][0]["ranks"][0];
  EXPECT_EQ(rank["step"], 12);
  EXPECT_EQ(rank["own_seconds"], 0.25);
  EXPECT_EQ(rank["straggler"], nullptr);
  const std::string metrics = Ask(*pages, "/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("muster_job_step{run_id=\"job\"} 12\n"));
  EXPECT_THAT(metrics, HasSubstr("muster_job_stragglers{run_id=\"job\"} 0\n"));
  EXPECT_THAT(metrics, HasSubstr("\nmuster_rank_loss{run_id=\"job\",rank=\"0\",host="));
  EXPECT_THAT(metrics, HasSubstr("\nmuster_rank_straggling{run_id=\"job\",rank=\"0\",host="));
  RankAlert alert{.kind = RankAlertKind::kStopped, .what = "was stopped by SIGSTOP"};
  server_.daemon_loop().Hear(agent, KeepAlive{.progress = {.round = round_, .alerts = {{alert}}}});
  const Json wrong = Json::parse(Ask(*pages, "/api/v1/jobs/job").body)["nodes"][0]["alerts"];
  ASSERT_EQ(wrong.size(), 1u);
  EXPECT_EQ(wrong[0]["kind"], "stopped");
  EXPECT_EQ(wrong[0]["what"], "was stopped by SIGSTOP");
  EXPECT_THAT(Ask(*pages, "/metrics").body,
              HasSubstr("muster_job_ranks_in_trouble{run_id=\"job\",trouble=\"stopped\"} 1\n"));
  // Nothing else changes from now on.
  std::string heard;
  EXPECT_TRUE(test::RunUntil(io_, [&] {
    char bytes[4096];
    boost::system::error_code error;
    stream.non_blocking(true);
    heard.append(bytes, stream.read_some(boost::asio::buffer(bytes), error));
    return heard.find("\"step\":12") != std::string::npos;
  }));
}

TEST_F(DaemonPagesTest, WhatIsNotThereIsNamed) {
  const auto pages = Open(Credentials::Plaintext());
  EXPECT_EQ(Ask(*pages, "/api/v1/jobs").body, "[]\n");
  EXPECT_EQ(Ask(*pages, "/api").status, 404);
  EXPECT_EQ(Ask(*pages, "/api/v1/jobs/").status, 404);
  const HttpAnswer answer = Ask(*pages, "/api/v1/jobs/a%2fb%00%");
  EXPECT_EQ(answer.status, 404);
  EXPECT_EQ(Json::parse(answer.body)["error"], std::string("there is no job 'a/b\0%'", 23));
}

TEST_F(DaemonPagesTest, PageIsForEverybodyAndUsesNothingButThisDaemon) {
  const auto pages = Open(Credentials::FromToken(Token::Random(), Role::kTool));
  for (const char* const path : {"/", "/page.css", "/page.js", "/ranks.js"}) {
    const HttpAnswer answer = Ask(*pages, path);
    EXPECT_EQ(answer.status, 200) << path;
    EXPECT_THAT(answer.body, Not(HasSubstr("http://"))) << path;
    EXPECT_THAT(answer.body, Not(HasSubstr("https://"))) << path;
    EXPECT_THAT(answer.body, Not(HasSubstr("innerHTML"))) << path;
    bool has_policy = false;
    for (const auto& [name, value] : answer.headers) {
      has_policy = has_policy ||
                   (name == "Content-Security-Policy" && value.find("default-src 'none'") == 0);
    }
    EXPECT_TRUE(has_policy) << path;
  }
  EXPECT_THAT(Ask(*pages, "/").body, testing::StartsWith("<!DOCTYPE html>"));
  EXPECT_EQ(Ask(*pages, "/api/v1/events").status, 401);
}

TEST_F(DaemonPagesTest, EventsBeginWithTheJobsAsTheyAre) {
  const auto pages = Open(Credentials::Plaintext());
  Join();
  const HttpAnswer answer = Ask(*pages, "/api/v1/events");
  EXPECT_TRUE(answer.is_stream);
  ASSERT_EQ(answer.body.substr(0, 6), "data: ");
  ASSERT_EQ(answer.body.substr(answer.body.size() - 2), "\n\n");
  EXPECT_EQ(answer.body.find('\n'), answer.body.size() - 2) << "one line";
  EXPECT_EQ(Json::parse(answer.body.substr(6))[0]["run_id"], "job");
}

// "I revoked the token of somebody who has left, and their browser went on showing our jobs."
TEST_F(DaemonPagesTest, WhoseTokenWasTakenAwayIsToldNoMore) {
  const test::TempDir tokens;
  const Token his = Token::Random();
  const std::string file = tokens.Write("his", his.Text() + "\n", 0600);
  tokens.Write("other", Token::Random().Text() + "\n", 0600);
  auto keyring = Keyring::OfDirectory(tokens.path());
  ASSERT_TRUE(keyring.ok()) << keyring.status();
  const auto pages = Open(Credentials::FromKeyring(*keyring, Role::kTool));
  tcp::socket stream(io_);
  stream.connect({boost::asio::ip::make_address("127.0.0.1"), pages->port()});
  stream.send(boost::asio::buffer("GET /api/v1/events HTTP/1.1\r\nAuthorization: Bearer " +
                                  his.Text() + "\r\n\r\n"));
  ASSERT_TRUE(test::RunUntil(io_, [&] { return stream.available() > 0; }));
  ASSERT_EQ(Ask(*pages, "/api/v1/jobs", his.Text()).status, 200);
  std::filesystem::remove(file);
  // And nobody connects but over HTTP.
  EXPECT_TRUE(
      test::RunUntil(io_, [&] { return Ask(*pages, "/api/v1/jobs", his.Text()).status == 401; }));
  stream.non_blocking(true);
  EXPECT_TRUE(test::RunUntil(io_, [&] {
    char bytes[4096];
    boost::system::error_code error;
    stream.read_some(boost::asio::buffer(bytes), error);
    return error && error != boost::asio::error::would_block;
  }));
}

TEST_F(DaemonPagesTest, RestartIsRecoveredFromWhenTheWorkersOfTheNextRoundHaveStarted) {
  const auto pages = Open(Credentials::Plaintext());
  const AgentId agent = Join();
  DaemonLoop& daemon_loop = server_.daemon_loop();
  daemon_loop.Hear(agent, WorkersStarted{round_});
  daemon_loop.Hear(agent,
                   WorkersExited{round_, {.failure = WorkerFailure{.rank = 0, .exit_code = 3}}});
  JoinRequest again = RequestFor(1, 1);
  again.settings.max_restarts = 3;
  again.after = round_.number;
  daemon_loop.Hear(agent, again);
  std::string metrics = Ask(*pages, "/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("muster_regathering_seconds_count 1\n"));
  EXPECT_THAT(metrics, HasSubstr("muster_recovery_seconds_count 0\n"));
  daemon_loop.Hear(agent, WorkersStarted{round_});
  metrics = Ask(*pages, "/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("muster_recovery_seconds_count 1\n"));
  const Json job = Json::parse(Ask(*pages, "/api/v1/jobs/job").body);
  EXPECT_GE(job["goodput"].get<double>(), 0);
  EXPECT_LE(job["goodput"].get<double>(), 1);
}

// "The page showed what had been, after the leader had stood still."
TEST_F(DaemonPagesTest, DaemonThatLeadsNoLongerShowsNothing) {
  const auto pages = Open(Credentials::Plaintext());
  Join();
  const auto leads = std::make_shared<bool>(true);
  server_.daemon_loop().LeadBy([leads] { return *leads; });
  EXPECT_EQ(Ask(*pages, "/api/v1/jobs").status, 200);
  *leads = false;
  for (const char* const path : {"/metrics", "/api/v1/jobs", "/api/v1/jobs/job",
                                 "/api/v1/jobs/none", "/api/v1/events", "/api/v1/jobs/job/logs"}) {
    const HttpAnswer answer = Ask(*pages, path);
    EXPECT_EQ(answer.status, 503) << path;
    EXPECT_THAT(answer.body, HasSubstr("this daemon is no longer the leader")) << path;
  }
  EXPECT_EQ(Ask(*pages, "/healthz").status, 200) << "its process is alive";
}

TEST_F(DaemonPagesTest, DaemonThatTakesNoNewNodesIsNotReady) {
  const auto pages = Open(Credentials::Plaintext());
  server_.Drain("it ends", [] {});
  EXPECT_EQ(Ask(*pages, "/readyz").status, 503);
  EXPECT_EQ(Ask(*pages, "/healthz").status, 200);
}

}  // namespace
}  // namespace muster::rendezvous
