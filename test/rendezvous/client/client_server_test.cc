// Agents' clients and the daemon over real local connections, on one loop and one thread: what one
// side does, the other must see.
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include "absl/strings/str_cat.h"
#include "rendezvous/client/in_process_client.h"
#include "rendezvous/client/rendezvous_client.h"
#include "rendezvous/server/server.h"
#include "test/rendezvous/support/join_request.h"
#include "test/rendezvous/support/recording_listener.h"
#include "test/support/run_until.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using test::RunUntil;
using ::testing::ElementsAre;
using ::testing::StartsWith;

class ClientServerTest : public ::testing::Test {
 protected:
  struct Node {
    RecordingListener heard;
    std::unique_ptr<RendezvousClient> client;
  };

  ClientServerTest() {
    const absl::Status status = server_->Listen({"127.0.0.1", 0}, Credentials::Plaintext());
    EXPECT_TRUE(status.ok()) << status;
    endpoint_ = {"127.0.0.1", server_->port()};
  }

  ~ClientServerTest() override {
    for (std::unique_ptr<Node>& node : nodes_) node->client.reset();
    server_.reset();
    // Until gRPC has let go of every stream.
    io_.restart();
    io_.run();
  }

  Node& NewNode() {
    nodes_.push_back(std::make_unique<Node>());
    Node& node = *nodes_.back();
    node.client = MakeGrpcClient(io_, {.endpoint = endpoint_}, node.heard);
    return node;
  }

  // So many nodes of one job, each with its Assignment.
  void Meet(int count, const JobSettings& settings = {}) {
    for (int i = 1; i <= count; ++i) {
      JoinRequest request = RequestFor(i, count);
      request.settings.max_restarts = settings.max_restarts;
      request.settings.lease = settings.lease;
      NewNode().client->Join(request);
    }
    ASSERT_TRUE(RunUntil(io_, [this] {
      for (const auto& node : nodes_) {
        if (node->heard.Last<Assignment>() == nullptr) return false;
      }
      return true;
    }));
  }

  bool Hears(const Node& node, const std::string& start) {
    return RunUntil(io_, [&] { return node.heard.Heard(start); });
  }

  Node& node(int index) { return *nodes_[index - 1]; }
  RoundId RoundOf(int index) { return node(index).heard.Last<Assignment>()->id(); }

  boost::asio::io_context io_;
  std::unique_ptr<Server> server_ = std::make_unique<Server>(io_);
  Endpoint endpoint_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

TEST_F(ClientServerTest, TwoNodesMeetAndEachGetsItsPlace) {
  Meet(2);
  for (const int i : {1, 2}) {
    EXPECT_EQ(node(i).heard.log.front(), "welcome: beat 1 s, lease 3 s");
    EXPECT_THAT(node(i).heard.log.back(),
                StartsWith(absl::StrCat("start round 0: group ", i - 1, "/2")));
  }
  const Assignment& second = *node(2).heard.Last<Assignment>();
  EXPECT_EQ(second.run_id, "job");
  EXPECT_EQ(second.base_rank, 1);
  EXPECT_EQ(second.world_size, 2);
  EXPECT_EQ(second.master_addr, "10.0.0.1");
  EXPECT_EQ(second.master_port, 40'001);
}

TEST_F(ClientServerTest, NothingIsHeardFromInsideAMethod) {
  Node& a = NewNode();
  a.client->Join(RequestFor(1, 1));
  EXPECT_TRUE(a.heard.log.empty());
}

TEST_F(ClientServerTest, NodeWithoutAnAddressIsWhereItsConnectionComesFrom) {
  Node& a = NewNode();
  JoinRequest request = RequestFor(1, 1);
  request.node.address = "";
  a.client->Join(request);
  ASSERT_TRUE(Hears(a, "start"));
  EXPECT_EQ(a.heard.Last<Assignment>()->master_addr, "127.0.0.1");
}

TEST_F(ClientServerTest, NodeInTheDaemonsProcessMeetsOneOnTheNetwork) {
  RecordingListener heard;
  InProcessClient host(io_, server_->daemon_loop(), heard);
  host.Join(RequestFor(1, 2));
  Node& b = NewNode();
  b.client->Join(RequestFor(2, 2));
  ASSERT_TRUE(Hears(b, "start round 0: group 1/2"));
  ASSERT_TRUE(RunUntil(io_, [&] { return heard.Heard("start round 0: group 0/2"); }));
}

TEST_F(ClientServerTest, WhatRanksTellIsThereWithTheNextKeepAlive) {
  Meet(2);
  node(2).heard.progress = {RoundOf(2), {{.local_rank = 0, .step = 12, .loss = 2.5}}};
  node(2).client->ProgressMade();
  absl::StatusOr<JobSnapshot> job;
  ASSERT_TRUE(RunUntil(io_, [&] {
    job = server_->daemon_loop().Describe("job");
    return job.ok() && job->nodes.size() == 2 && !job->nodes[1].ranks.empty();
  }));
  EXPECT_EQ(job->nodes[1].ranks[0].rank, 1);
  EXPECT_EQ(job->nodes[1].ranks[0].told.step, 12);
  EXPECT_TRUE(job->nodes[0].heard_ago.has_value());
  EXPECT_TRUE(job->nodes[0].ranks.empty());
}

// "kill -9 of one agent, and the others waited for three seconds."
TEST_F(ClientServerTest, AgentWhoseGuardSaysThatItIsDeadIsLostAtOnce) {
  Meet(2, {.lease = std::chrono::hours(1)});
  const auto notice = node(2).client->death_notice();
  ASSERT_TRUE(notice.has_value());
  const auto send = [&](const std::string& text) {
    boost::asio::ip::tcp::socket guard(io_);
    guard.connect(notice->to);
    boost::asio::write(guard, boost::asio::buffer(text));
  };
  // Who can't name the session tells nothing.
  send("DEAD \n");
  send("DEAD of-another\n");
  send(notice->text.substr(0, notice->text.size() - 1));
  send(std::string(1000, 'D'));
  send(notice->text);
  ASSERT_TRUE(
      Hears(node(1), "stop round 0: node host2 was lost: its agent died, and so did its workers"));
}

TEST_F(ClientServerTest, NobodyOutlivesAnAgentInTheDaemonsProcess) {
  RecordingListener heard;
  InProcessClient host(io_, server_->daemon_loop(), heard);
  EXPECT_EQ(host.death_notice(), std::nullopt);
}

TEST_F(ClientServerTest, JobSucceedsOnceTheWorkersOfAllNodesHave) {
  Meet(2);
  for (const int i : {1, 2}) {
    node(i).client->Say(WorkersStarted{RoundOf(i)});
    node(i).client->Say(WorkersExited{RoundOf(i), {.succeeded = true}});
  }
  for (const int i : {1, 2}) {
    ASSERT_TRUE(Hears(node(i), "verdict: job 'job' succeeded: 2 workers on 2 nodes"));
    bool left = false;
    node(i).client->Leave("", [&] { left = true; });
    ASSERT_TRUE(RunUntil(io_, [&] { return left; }));
  }
  EXPECT_EQ(server_->daemon_loop().job_count(), 0);
}

TEST_F(ClientServerTest, FailureStopsEveryNodeAndTheNextRoundBringsThemTogetherAgain) {
  Meet(2, {.max_restarts = 1});
  node(1).client->Say(WorkersExited{
      RoundOf(1),
      {.failure = WorkerFailure{.rank = 0, .host = "host1", .what = "exited with code 3"}}});
  for (const int i : {1, 2}) {
    ASSERT_TRUE(Hears(node(i), "stop round 0: rank 0 on host host1 exited with code 3"));
  }
  for (const int i : {1, 2}) {
    JoinRequest request = RequestFor(i, 2);
    request.after = 0;
    node(i).client->Join(request);
  }
  for (const int i : {1, 2}) ASSERT_TRUE(Hears(node(i), "start round 1: "));
  EXPECT_EQ(node(2).heard.Last<Assignment>()->restart_count, 1);
}

TEST_F(ClientServerTest, VerdictTellsEveryNodeTheRootCause) {
  Meet(2);
  const WorkerFailure failure{.rank = 0,
                              .host = "host1",
                              .pid = 42,
                              .signal = 11,
                              .what = "was killed by SIGSEGV",
                              .stderr_tail = "two\nlines\n",
                              .log_path = "/logs/0/stderr.log"};
  node(1).client->Say(WorkersExited{RoundOf(1), {.failure = failure}});
  for (const int i : {1, 2}) {
    ASSERT_TRUE(Hears(node(i), "verdict: job 'job' failed in round 0: rank 0 on host host1 was"));
    EXPECT_EQ(node(i).heard.Last<Verdict>()->root_cause, failure);
  }
}

// One worker whose path had a byte that is no UTF-8 cut the streams of all agents: protobuf does
// not read a message with such a string.
TEST_F(ClientServerTest, FailureWithBytesThatAreNoTextReachesEveryNode) {
  Meet(2);
  node(1).client->Say(WorkersExited{
      RoundOf(1), {.failure = WorkerFailure{.what = "could not be started: caf\xe9"}}});
  for (const int i : {1, 2}) {
    ASSERT_TRUE(Hears(node(i), "verdict: "));
    EXPECT_EQ(node(i).heard.Last<Verdict>()->root_cause->what, "could not be started: caf?");
  }
}

TEST_F(ClientServerTest, ReportOfARoundThatIsOverIsFenced) {
  Meet(2, {.max_restarts = 1});
  const WorkersOutcome failed{.failure = WorkerFailure{.what = "exited with code 3"}};
  node(1).client->Say(WorkersExited{RoundOf(1), failed});
  node(1).client->Say(WorkersExited{RoundOf(1), failed});
  ASSERT_TRUE(Hears(node(1), "fenced: round 0 is over"));
  EXPECT_EQ(server_->daemon_loop().Describe("job")->restart_count, 1);
}

TEST_F(ClientServerTest, KeepAlivesHoldAShortLease) {
  Meet(2, {.lease = milliseconds(500)});
  boost::asio::steady_timer three_leases(io_, milliseconds(1500));
  bool over = false;
  three_leases.async_wait([&](const boost::system::error_code&) { over = true; });
  ASSERT_TRUE(RunUntil(io_, [&] { return over; }));
  EXPECT_EQ(server_->daemon_loop().agent_count(), 2);
  for (const int i : {1, 2}) EXPECT_THAT(node(i).heard.log.back(), StartsWith("start round 0: "));
}

TEST_F(ClientServerTest, NodeWhoseClientIsDestroyedIsLostToTheOthers) {
  Meet(2);
  node(1).client.reset();
  ASSERT_TRUE(Hears(node(2), "stop round 0: node host1 was lost: its "));
  EXPECT_EQ(server_->daemon_loop().agent_count(), 1);
}

TEST_F(ClientServerTest, LeaveIsHeardAndSaysWhy) {
  Meet(2);
  bool left = false;
  node(1).client->Leave("interrupted by SIGTERM", [&] { left = true; });
  EXPECT_FALSE(left);
  ASSERT_TRUE(RunUntil(io_, [&] { return left; }));
  ASSERT_TRUE(Hears(node(2), "stop round 0: node host1 left: interrupted by SIGTERM"));
  EXPECT_EQ(server_->daemon_loop().agent_count(), 1);
  EXPECT_THAT(node(1).heard.log.back(), StartsWith("start round 0: "));
}

TEST_F(ClientServerTest, ReasonToLeaveCannotForgeLinesOfTheLog) {
  Meet(2);
  node(1).client->Leave("bored\nrun=other\x1b[2J" + std::string(1000, 'x'), [] {});
  ASSERT_TRUE(Hears(node(2), "stop round 0: node host1 left: bored run=other?[2Jxxx"));
  EXPECT_LT(node(2).heard.Last<Stop>()->reason.size(), 300u);
}

TEST_F(ClientServerTest, LeavingStopsTheOthersBeforeTheGoodbye) {
  Meet(2);
  node(1).client->Say(Leaving{"interrupted by SIGINT"});
  ASSERT_TRUE(Hears(node(2), "stop round 0: node host1 is leaving: interrupted by SIGINT"));
  EXPECT_EQ(server_->daemon_loop().agent_count(), 2);
}

TEST_F(ClientServerTest, NodeThatDisagreesIsRefusedAndThatIsAll) {
  Node& a = NewNode();
  a.client->Join(RequestFor(1, 2));
  ASSERT_TRUE(Hears(a, "welcome"));
  Node& b = NewNode();
  b.client->Join(RequestFor(2, 3));
  ASSERT_TRUE(Hears(b, "refused: "));
  EXPECT_THAT(b.heard.log, ElementsAre(StartsWith("refused: node host2 asks for --nnodes=3, but "
                                                  "job 'job' was started with --nnodes=2")));
  bool left = false;
  b.client->Leave("", [&] { left = true; });
  ASSERT_TRUE(RunUntil(io_, [&] { return left; }));
  EXPECT_EQ(server_->daemon_loop().agent_count(), 1);
}

TEST_F(ClientServerTest, DaemonThatEndsIsGoneForItsNodes) {
  Meet(2);
  bool stopped = false;
  server_->Stop([&] { stopped = true; });
  for (const int i : {1, 2}) {
    ASSERT_TRUE(Hears(node(i), "lost: "));
    EXPECT_TRUE(node(i).heard.Heard("out of touch: the connection to the rendezvous at "));
    EXPECT_THAT(
        node(i).heard.log.back(),
        StartsWith(absl::StrCat("lost: the rendezvous at ", ToString(endpoint_), " is gone: ")));
  }
  ASSERT_TRUE(RunUntil(io_, [&] { return stopped; }));
}

TEST_F(ClientServerTest, DaemonThatEndsAtOnceDoesNotWaitForItsNodes) {
  Meet(2);
  server_.reset();
  for (const int i : {1, 2}) ASSERT_TRUE(Hears(node(i), "lost: "));
}

TEST_F(ClientServerTest, ManyNodesComeAtOnce) {
  constexpr int kNodes = 32;
  Meet(kNodes);
  std::set<int> ranks;
  for (int i = 1; i <= kNodes; ++i) {
    const Assignment& place = *node(i).heard.Last<Assignment>();
    EXPECT_EQ(place.world_size, kNodes);
    EXPECT_EQ(place.master_addr, "10.0.0.1");
    ranks.insert(place.group_rank);
  }
  EXPECT_EQ(ranks.size(), 32u);
  EXPECT_EQ(*ranks.rbegin(), kNodes - 1);
}

TEST_F(ClientServerTest, ListenerMayDestroyTheClientFromWithin) {
  struct Impatient final : RendezvousClient::Listener {
    void OnDirective(const Directive&) override {
      ++heard;
      client.reset();
    }
    void OnTrouble(const std::string&) override {}
    void OnOutOfTouch(const std::string&) override {}
    void OnBackInTouch(Duration) override {}
    void OnDeadline(std::optional<TimePoint>) override {}
    void OnFenced(const std::string&) override {}
    void OnLost(const absl::Status&) override { ++heard; }
    std::unique_ptr<RendezvousClient> client;
    int heard = 0;
  } impatient;
  impatient.client = MakeGrpcClient(io_, {.endpoint = endpoint_}, impatient);
  impatient.client->Join(RequestFor(1, 1));
  ASSERT_TRUE(RunUntil(io_, [&] { return impatient.heard > 0; }));
  ASSERT_TRUE(RunUntil(io_, [&] { return server_->daemon_loop().agent_count() == 0; }));
  EXPECT_EQ(impatient.heard, 1);
}

// The beat was already on the loop's list when the client was destroyed, and cancelling its timer
// no longer stopped it.
TEST_F(ClientServerTest, BeatThatIsDueWhenTheClientIsDestroyedDiesWithIt) {
  Meet(1, {.lease = milliseconds(1000)});
  bool destroyed = false;
  boost::asio::post(io_, [&] {
    // The loop is held until the beat is due; it then finds both at once, the destruction first.
    const auto due = std::chrono::steady_clock::now() + milliseconds(400);
    while (std::chrono::steady_clock::now() < due) {
    }
    boost::asio::post(io_, [&] {
      node(1).client.reset();
      destroyed = true;
    });
  });
  ASSERT_TRUE(RunUntil(io_, [&] { return destroyed; }));
  ASSERT_TRUE(RunUntil(io_, [&] { return server_->daemon_loop().agent_count() == 0; }));
}

}  // namespace
}  // namespace muster::rendezvous
