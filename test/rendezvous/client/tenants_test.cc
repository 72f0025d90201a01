// A daemon of several tenants: what each of them sees, and what each role may do. Tools block, so
// they run on a thread of their own while the server's loop runs here.
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <grpcpp/channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "rendezvous/client/daemon_channel.h"
#include "rendezvous/client/job_watch.h"
#include "rendezvous/client/log_reader.h"
#include "rendezvous/client/rendezvous_client.h"
#include "rendezvous/client/store_client.h"
#include "rendezvous/fronts/permissions.h"
#include "rendezvous/identity/token.h"
#include "rendezvous/server/server.h"
#include "test/rendezvous/support/join_request.h"
#include "test/rendezvous/support/recording_listener.h"
#include "test/support/run_until.h"
#include "test/support/temp_dir.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::RunUntil;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TenantsTest : public ::testing::Test {
 protected:
  TenantsTest() {
    for (const char* name : {"alice", "bob", "carol"}) MakeToken(name);
    auto keyring = Keyring::OfDirectory(dir_.Path("tokens"));
    EXPECT_TRUE(keyring.ok()) << keyring.status();
    EXPECT_TRUE(
        server_.Listen({"127.0.0.1", 0}, Credentials::FromKeyring(*keyring, Role::kDaemon)).ok());
  }

  void MakeToken(const std::string& tenant) {
    const Token token = Token::Random();
    tokens_.insert_or_assign(tenant, token);
    EXPECT_TRUE(WriteTokenFile(dir_.Path("tokens/" + tenant), token).ok());
  }

  template <typename Result>
  Result Meanwhile(std::function<Result()> what) {
    auto done = std::async(std::launch::async, std::move(what));
    EXPECT_TRUE(RunUntil(
        io_, [&] { return done.wait_for(seconds(0)) == std::future_status::ready; }, seconds(60)));
    return done.get();
  }

  Endpoint At() const { return {"127.0.0.1", server_.port()}; }
  DaemonOptions As(const Token& token, Role role = Role::kTool) const {
    return {.endpoint = At(), .credentials = Credentials::FromToken(token, role)};
  }
  DaemonOptions As(const std::string& tenant, Role role = Role::kTool) const {
    return As(tokens_.at(tenant), role);
  }

  // An agent of the tenant's, of a job "job" of one node.
  struct Agent {
    std::unique_ptr<RecordingListener> heard = std::make_unique<RecordingListener>();
    std::unique_ptr<RendezvousClient> client;
  };
  Agent Join(const Token& token, int index = 1) {
    Agent agent;
    agent.client = MakeGrpcClient(
        io_, {.endpoint = At(), .credentials = Credentials::FromToken(token, Role::kAgent)},
        *agent.heard);
    JoinRequest request = RequestFor(index, 1);
    request.settings.lease = std::chrono::hours(1);
    agent.client->Join(request);
    return agent;
  }
  Agent Join(const std::string& tenant, int index = 1) {
    Agent agent = Join(tokens_.at(tenant), index);
    EXPECT_TRUE(RunUntil(io_, [&] { return agent.heard->Last<Assignment>() != nullptr; }));
    return agent;
  }

  // The nodes of all jobs that there are, as these see them; or why they see none.
  std::vector<std::string> Nodes(const DaemonOptions& daemon) {
    return Meanwhile<std::vector<std::string>>([daemon] {
      const auto jobs = ListJobs(daemon);
      if (!jobs.ok()) return std::vector<std::string>{std::string(jobs.status().message())};
      std::vector<std::string> nodes;
      for (const JobSnapshot& job : *jobs) {
        for (const NodeSnapshot& node : job.nodes) nodes.push_back(node.node.node_id);
      }
      return nodes;
    });
  }

  // How the daemon answers a call with `request` as the bytes of its message. Of a call that goes
  // on, OK once it has said something.
  grpc::Status Call(const DaemonOptions& daemon, const std::string& method,
                    const std::string& request) {
    return Meanwhile<grpc::Status>([&] {
      grpc::GenericStub stub(OpenChannel(ChannelTarget(daemon.endpoint), daemon.credentials));
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + seconds(30));
      grpc::CompletionQueue queue;
      const auto next = [&queue] {
        void* tag = nullptr;
        bool ok = false;
        return queue.Next(&tag, &ok) && ok;
      };
      const grpc::Slice slice(request);
      const auto call = stub.PrepareCall(&context, "/" + method, &queue);
      call->StartCall(nullptr);
      next();
      call->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
      next();
      grpc::ByteBuffer answer;
      call->Read(&answer, nullptr);
      const bool has_answered = next();
      if (has_answered) context.TryCancel();
      grpc::Status status;
      call->Finish(&status, nullptr);
      next();
      return has_answered ? grpc::Status::OK : status;
    });
  }

  const test::TempDir dir_;
  std::map<std::string, Token> tokens_;
  boost::asio::io_context io_;
  Server server_{io_, Server::Serves::kManyJobs};
};

// A DescribeRequest, and the beginning of every request of the store's: run_id = "job".
const char kAboutJob[] = "\n\3job";

TEST_F(TenantsTest, TwoOfThemUseOneRunIdAndNeitherSeesTheOther) {
  const Agent alices = Join("alice", 1);
  const Agent bobs = Join("bob", 2);
  EXPECT_EQ(server_.job_count(), 2);
  EXPECT_THAT(Nodes(As("alice")), ElementsAre("node-1"));
  EXPECT_THAT(Nodes(As("bob")), ElementsAre("node-2"));
  EXPECT_THAT(Nodes(As("carol")), ElementsAre());

  const std::string told = Meanwhile<std::string>([&] {
    StoreClient alice(As("alice"), "job"), bob(As("bob"), "job"), carol(As("carol"), "job");
    std::string answers = alice.Set("key", "hers").ToString();
    absl::StrAppend(&answers, ", ", bob.Get("key")->value_or("none"));
    absl::StrAppend(&answers, ", ", bob.Set("key", "his").ToString());
    absl::StrAppend(&answers, ", ", alice.Get("key")->value_or("none"));
    absl::StrAppend(&answers, ", ", carol.Get("key").status().code());
    return answers;
  });
  EXPECT_EQ(told, absl::StrCat("OK, none, OK, hers, ", absl::StatusCode::kNotFound));
}

TEST_F(TenantsTest, WhatIsAnothersIsNotThereInAnyCall) {
  const Agent alices = Join("alice");
  for (const Permission& line : kPermissions) {
    if (line.rpc == Rpc::kAttend || line.rpc == Rpc::kList) continue;
    if (line.rpc == Rpc::kTunnelCarry) continue;  // An agent's service (tunnel_test.cc).
    // It names no job: numbers that were told to this tenant's agents alone (log_reader_test.cc).
    if (line.rpc == Rpc::kDeliverLog) continue;
    const std::string method(line.method);
    EXPECT_NE(Call(As("alice"), method, kAboutJob).error_message(), "no job 'job' here") << method;
    const grpc::Status foreign = Call(As("bob"), method, kAboutJob);
    EXPECT_EQ(foreign.error_code(), grpc::StatusCode::NOT_FOUND) << method;
    EXPECT_EQ(foreign.error_message(), "no job 'job' here") << method;
  }
}

TEST_F(TenantsTest, EachRoleMayDoWhatTheTableSays) {
  const Agent alices = Join("alice");
  const Token metrics = tokens_.at("alice").ForMetrics();
  for (const Permission& line : kPermissions) {
    if (line.rpc == Rpc::kTunnelCarry) continue;  // As above.
    const std::string method(line.method);
    const auto denied = [&](const DaemonOptions& caller) {
      return Call(caller, method, kAboutJob).error_code() == grpc::StatusCode::PERMISSION_DENIED;
    };
    EXPECT_EQ(denied(As("alice", Role::kAgent)), !line.agent) << method;
    EXPECT_EQ(denied(As("alice", Role::kTool)), !line.tool) << method;
    EXPECT_EQ(denied(As(metrics, Role::kTool)), !line.metrics) << method;
    EXPECT_EQ(denied(As(metrics, Role::kAgent)), !line.metrics) << method;
  }
  EXPECT_THAT(Nodes(As(metrics)), ElementsAre("node-1"));
  EXPECT_THAT(Nodes(As(tokens_.at("bob").ForMetrics())), ElementsAre());
  const Agent refused = Join(metrics);
  EXPECT_TRUE(RunUntil(io_, [&] { return refused.heard->Heard("lost: "); }));
  EXPECT_THAT(refused.heard->log.back(),
              HasSubstr("this client is one of the role metrics and may not call "
                        "muster.rendezvous.v1.Rendezvous/Attend"));
}

TEST_F(TenantsTest, OneWhoComesWhileTheDaemonRunsIsServed) {
  MakeToken("dave");
  const Agent daves = Join("dave");
  EXPECT_THAT(Nodes(As("dave")), ElementsAre("node-1"));
}

// The revoked tenant's old connection went on reading jobs for as long as it liked.
TEST_F(TenantsTest, OneWhoseTokenIsTakenAwayIsTurnedAwayOnHisOldConnectionToo) {
  const Agent alices = Join("alice");
  StoreClient old(As("alice"), "job");
  const auto set = [&] {
    return Meanwhile<std::string>([&] { return std::string(old.Set("key", "v").message()); });
  };
  EXPECT_EQ(set(), "");
  std::filesystem::remove(dir_.Path("tokens/alice"));
  // The directory is looked at when somebody connects.
  EXPECT_THAT(Nodes(As("bob")), ElementsAre());
  EXPECT_THAT(set(), HasSubstr("no longer valid"));
  EXPECT_THAT(Nodes(As("alice")), ElementsAre(HasSubstr("it was started with another token")));
}

struct Watching final : JobWatch::Listener {
  void OnJobs(const WatchedJobs& watched) override { told = watched; }
  void OnOutOfTouch(const std::string& why) override { ADD_FAILURE() << why; }
  void OnOver(const absl::Status& status) override { over = status; }

  std::optional<WatchedJobs> told;
  std::optional<absl::Status> over;
};

TEST_F(TenantsTest, WhoWatchesIsToldOfHisOwnJobsAlone) {
  Watching alice, bob;
  const JobWatch hers(io_, As("alice"), "", alice), his(io_, As("bob"), "", bob);
  ASSERT_TRUE(RunUntil(io_, [&] { return alice.told && bob.told; }));
  const Agent alices = Join("alice");
  ASSERT_TRUE(RunUntil(io_, [&] { return alice.told->jobs.size() == 1; }));
  EXPECT_EQ(alice.told->jobs[0].nodes.at(0).node.node_id, "node-1");
  const Agent bobs = Join("bob", 2);
  ASSERT_TRUE(RunUntil(io_, [&] { return bob.told->jobs.size() == 1; }));
  EXPECT_EQ(bob.told->jobs[0].nodes.at(0).node.node_id, "node-2");
  EXPECT_EQ(alice.told->jobs[0].nodes.size(), 1u);
}

// A call that goes on is asked for once only, and would have gone on for ever.
TEST_F(TenantsTest, WhoWatchesWithATokenThatIsTakenAwayIsTurnedAway) {
  Watching alice;
  const JobWatch hers(io_, As("alice"), "", alice);
  ASSERT_TRUE(RunUntil(io_, [&] { return alice.told.has_value(); }));
  std::filesystem::remove(dir_.Path("tokens/alice"));
  const Agent bobs = Join("bob");
  ASSERT_TRUE(RunUntil(io_, [&] { return alice.over.has_value(); }));
  EXPECT_THAT(std::string(alice.over->message()), HasSubstr("no longer valid"));
}

// After a token had been taken away, a running "muster logs -f" went on showing what workers print
// for as long as it liked.
TEST_F(TenantsTest, WhoReadsLogsWithATokenThatIsTakenAwayIsTurnedAway) {
  const Agent alices = Join("alice");
  int parts = 0;
  std::optional<absl::Status> over;
  const LogReader reader(io_, As("alice"), {.run_id = "job", .extent = {.follow = true}},
                         {.on_part = [&](const LogPart&) { ++parts; },
                          .on_end = [&](const absl::Status& status) { over = status; }});
  ASSERT_TRUE(RunUntil(io_, [&] { return parts > 0; }));
  std::filesystem::remove(dir_.Path("tokens/alice"));
  // The directory is looked at when somebody connects.
  EXPECT_THAT(Nodes(As("bob")), ElementsAre());
  // The next round is something to tell.
  JoinRequest again = RequestFor(1, 1);
  again.settings.lease = std::chrono::hours(1);
  again.after = 0;
  alices.client->Join(again);
  ASSERT_TRUE(RunUntil(io_, [&] { return over.has_value(); }));
  EXPECT_THAT(std::string(over->message()), HasSubstr("no longer valid"));
}

// "muster kv get --timeout" and "wait" that were there before a token was revoked were given what
// was set afterwards.
TEST_F(TenantsTest, NoCallThatWaitsIsAnsweredOnceItsTokenIsRevoked) {
  const Agent alices = Join("alice");
  const std::string file = dir_.Path("tokens/alice");
  const Token revoked = tokens_.at("alice");
  // All that waits of the store; what goes on (Watch, ReadLog) is above. Each would be answered by
  // what happens below.
  std::vector<std::future<std::string>> waiting;
  const auto wait = [&](std::function<absl::Status(StoreClient&)> what) {
    waiting.push_back(std::async(std::launch::async, [this, revoked, what = std::move(what)] {
      StoreClient store(As(revoked), "job");
      return what(store).ToString();
    }));
  };
  static constexpr std::chrono::seconds kLong(60);
  wait([](StoreClient& store) { return store.GetWhenThere("key", kLong).status(); });
  wait([](StoreClient& store) { return store.Wait({"key"}, kLong); });
  wait([](StoreClient& store) { return store.Barrier("all", 2, kLong); });
  const DaemonLoop* const daemon_loop = server_.FindLoop("alice");
  ASSERT_TRUE(RunUntil(
      io_, [&] { return daemon_loop->waiting_calls() == waiting.size(); }, seconds(60)));

  const auto rotated = RotateTokenFile(file, absl::Now());
  ASSERT_TRUE(rotated.ok()) << rotated.status();
  EXPECT_EQ(Meanwhile<std::string>([&] {
              StoreClient owner(As(rotated->token), "job");
              const absl::Status set = owner.Set("key", "secret");
              return set.ok() ? owner.Barrier("all", 2, milliseconds(100)).ToString()
                              : set.ToString();
            }),
            "DEADLINE_EXCEEDED: 1 of 2 reached barrier 'all'");
  for (auto& call : waiting) {
    EXPECT_TRUE(RunUntil(
        io_, [&] { return call.wait_for(seconds(0)) == std::future_status::ready; }, seconds(60)));
    EXPECT_THAT(call.get(), HasSubstr("no longer valid"));
  }
}

// With 100 tenants, to change one token kept the others out for half a minute.
TEST_F(TenantsTest, EachOfManyIsServedWhileTokensOfOthersChange) {
  constexpr int kTenants = 40;
  for (int i = 0; i < kTenants; ++i) MakeToken(absl::StrCat("t", i));
  for (int i = 0; i < kTenants; ++i) {
    const std::string tenant = absl::StrCat("t", i);
    EXPECT_THAT(Nodes(As(tenant)), ElementsAre()) << tenant;
    const auto rotated = RotateTokenFile(dir_.Path("tokens/" + tenant), absl::Now());
    ASSERT_TRUE(rotated.ok()) << rotated.status();
    EXPECT_THAT(Nodes(As(rotated->token)), ElementsAre()) << tenant;
    EXPECT_THAT(Nodes(As(tenant)), ElementsAre(HasSubstr("it was started with another token")));
    tokens_.insert_or_assign(tenant, rotated->token);
  }
  // And again, now that all have been there.
  for (int i = 0; i < kTenants; ++i) EXPECT_THAT(Nodes(As(absl::StrCat("t", i))), ElementsAre());
  const Agent alices = Join("alice");
  EXPECT_THAT(Nodes(As("t0")), ElementsAre());
  EXPECT_THAT(Nodes(As("alice")), ElementsAre("node-1"));
}

// Every node had to be stopped to change a token that had become known.
TEST_F(TenantsTest, ATokenIsChangedWhileAJobRuns) {
  const std::string file = dir_.Path("tokens/alice");
  const auto keyring = Keyring::OfFile(file);
  Agent agent;
  agent.client = MakeGrpcClient(
      io_, {.endpoint = At(), .credentials = Credentials::FromKeyring(*keyring, Role::kAgent)},
      *agent.heard);
  agent.client->Join(RequestFor(1, 1));
  EXPECT_TRUE(RunUntil(io_, [&] { return agent.heard->Last<Assignment>() != nullptr; }));
  const Token former = tokens_.at("alice");
  ASSERT_TRUE(RotateTokenFile(file, absl::Now() + absl::Hours(1)).ok());
  EXPECT_THAT(Nodes(As(*ReadTokenFile(file))), ElementsAre("node-1"));
  EXPECT_THAT(Nodes(As(former)), ElementsAre("node-1"));
  ASSERT_TRUE(RotateTokenFile(file, absl::Now() + absl::Hours(1)).ok());
  EXPECT_THAT(Nodes(As(*ReadTokenFile(file))), ElementsAre("node-1"));
  EXPECT_THAT(Nodes(As(former)), ElementsAre("node-1")) << "it has its hour";
  ASSERT_TRUE(RotateTokenFile(file, absl::Now()).ok());
  EXPECT_THAT(Nodes(As(*ReadTokenFile(file))), ElementsAre("node-1"));
  EXPECT_THAT(Nodes(As(former)), ElementsAre(HasSubstr("it was started with another token")));
  EXPECT_FALSE(agent.heard->Heard("lost: "));
}

}  // namespace
}  // namespace muster::rendezvous
