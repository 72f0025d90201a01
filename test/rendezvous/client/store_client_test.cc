// A tool's requests to a real server on a free port. The tool blocks, so it runs on its own thread
// while the loop runs here.
#include "rendezvous/client/store_client.h"

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "rendezvous/client/daemon_channel.h"
#include "rendezvous/server/server.h"
#include "test/rendezvous/support/join_request.h"
#include "test/support/run_until.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::RunUntil;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Longer than any test may take: a wait that it ends has hung.
constexpr milliseconds kLong = seconds(60);

class StoreClientTest : public ::testing::Test {
 protected:
  StoreClientTest() { Start(0); }

  // A server with job "job", whose first of two nodes is there.
  void Start(std::uint16_t port) {
    server_.emplace(io_);
    ASSERT_TRUE(server_->Listen({"127.0.0.1", port}, Credentials::Plaintext()).ok());
    agent_ = server_->daemon_loop().Attach([](const Directive&) {});
    server_->daemon_loop().Hear(agent_, RequestFor(1, 2));
  }

  DaemonOptions Daemon() const { return {.endpoint = {"127.0.0.1", server_->port()}}; }
  StoreClient Client(const std::string& run_id = "job") const { return {Daemon(), run_id}; }

  std::future<void> Talk(std::function<void()> talk) {
    return std::async(std::launch::async, std::move(talk));
  }
  // Runs the loop until the tool is done.
  void Finish(std::future<void> tool) {
    EXPECT_TRUE(RunUntil(
        io_, [&] { return tool.wait_for(seconds(0)) == std::future_status::ready; }, kLong));
  }
  // Runs the loop until so many calls wait.
  [[nodiscard]] bool Waiting(std::size_t count) {
    return RunUntil(io_, [&] { return server_->daemon_loop().waiting_calls() == count; });
  }

  boost::asio::io_context io_;
  std::optional<Server> server_;
  AgentId agent_ = 0;
};

TEST_F(StoreClientTest, EachCallDoesWhatItsNameSays) {
  Finish(Talk([&] {
    StoreClient store = Client();
    const std::string binary("a\0\n\xff", 4);
    EXPECT_EQ(*store.Get("k"), std::nullopt);
    EXPECT_TRUE(store.Set("k", binary).ok());
    EXPECT_EQ(*store.Get("k"), binary);
    EXPECT_EQ(*store.GetWhenThere("k", kLong), binary);
    EXPECT_TRUE(store.Append("k", "!").ok());
    EXPECT_EQ(*store.Get("k"), binary + "!");
    EXPECT_EQ(*store.Add("n", 5), 5);
    EXPECT_EQ(*store.Add("n", -7), -2);
    EXPECT_EQ(store.Add("k", 1).status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_TRUE(*store.Check({"k", "n"}));
    EXPECT_FALSE(*store.Check({"k", "x"}));
    EXPECT_TRUE(store.Wait({"k", "n"}, std::nullopt).ok());
    EXPECT_EQ(*store.NumKeys(), 2u);
    EXPECT_TRUE(*store.Delete("k"));
    EXPECT_FALSE(*store.Delete("k"));
  }));
}

TEST_F(StoreClientTest, CompareSetSaysWhatIsThere) {
  Finish(Talk([&] {
    StoreClient store = Client();
    auto outcome = store.CompareSet("k", "old", "new");
    EXPECT_FALSE(outcome->stored);
    EXPECT_EQ(outcome->value, std::nullopt) << "there is no such key";
    outcome = store.CompareSet("k", "", "first");
    EXPECT_TRUE(outcome->stored);
    EXPECT_EQ(outcome->value, "first");
    outcome = store.CompareSet("k", "old", "new");
    EXPECT_FALSE(outcome->stored);
    EXPECT_EQ(outcome->value, "first");
    outcome = store.CompareSet("k", "first", "second");
    EXPECT_TRUE(outcome->stored);
  }));
}

TEST_F(StoreClientTest, WaitIsAnsweredWhenTheKeyComes) {
  std::future<void> waiter = Talk([&] {
    EXPECT_TRUE(Client().Wait({"a"}, std::nullopt).ok());
    EXPECT_EQ(*Client().GetWhenThere("b", kLong), "2");
  });
  ASSERT_TRUE(Waiting(1));
  Finish(Talk([&] { EXPECT_TRUE(Client().Set("a", "1").ok()); }));
  ASSERT_TRUE(Waiting(1));
  Finish(Talk([&] { EXPECT_TRUE(Client().Set("b", "2").ok()); }));
  Finish(std::move(waiter));
}

TEST_F(StoreClientTest, KeyThatDoesNotComeInTimeIsNoFailureOfTheDaemon) {
  Finish(Talk([&] {
    StoreClient store = Client();
    EXPECT_TRUE(absl::IsDeadlineExceeded(store.Wait({"x"}, milliseconds(20))));
    EXPECT_TRUE(absl::IsDeadlineExceeded(store.Wait({"x"}, milliseconds(0))));
    EXPECT_TRUE(absl::IsDeadlineExceeded(store.GetWhenThere("x", milliseconds(20)).status()));
  }));
  EXPECT_TRUE(Waiting(0));
}

TEST_F(StoreClientTest, UnknownJobIsNotFound) {
  Finish(Talk([&] {
    StoreClient store = Client("other");
    const std::string expected = absl::StrCat(ToString(Daemon().endpoint), ": no job 'other' here");
    EXPECT_EQ(store.Get("k").status(), absl::NotFoundError(expected));
    EXPECT_EQ(store.GetWhenThere("k", kLong).status(), absl::NotFoundError(expected));
    EXPECT_EQ(store.Set("k", ""), absl::NotFoundError(expected));
    EXPECT_EQ(store.Wait({"k"}, kLong), absl::NotFoundError(expected));
    EXPECT_EQ(store.Barrier("b", 1, kLong), absl::NotFoundError(expected));
    EXPECT_EQ(DescribeJob(Daemon(), "other").status(), absl::NotFoundError(expected));
  }));
}

TEST_F(StoreClientTest, WaitEndsWithTheJob) {
  std::future<void> waiter = Talk([&] {
    const absl::Status status = Client().Wait({"x"}, std::nullopt);
    EXPECT_TRUE(absl::IsAborted(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr("job 'job' has ended"));
  });
  ASSERT_TRUE(Waiting(1));
  server_->daemon_loop().Hear(agent_, Goodbye{"the test is over"});
  Finish(std::move(waiter));
}

// "The daemon was restarted, no worker noticed, and the scripts that waited all died."
TEST_F(StoreClientTest, WaitOutlivesARestart) {
  std::future<void> waiter = Talk([store = std::make_shared<StoreClient>(Daemon(), "job")] {
    EXPECT_TRUE(store->Wait({"x"}, std::nullopt).ok());
    EXPECT_EQ(*store->GetWhenThere("y", std::nullopt), "2");
  });
  for (const char* key : {"x", "y"}) {
    ASSERT_TRUE(Waiting(1));
    const std::uint16_t port = server_->port();
    server_.reset();
    Start(port);
    ASSERT_TRUE(Waiting(1));
    Finish(Talk([&] { EXPECT_TRUE(Client().Set(key, "2").ok()); }));
  }
  Finish(std::move(waiter));
}

TEST_F(StoreClientTest, BarrierLetsAllGoTogetherAgainAndAgain) {
  for (int use = 0; use < 3; ++use) {
    const auto meet = [&] { EXPECT_TRUE(Client().Barrier("b", 2, std::nullopt).ok()); };
    std::future<void> first = Talk(meet);
    ASSERT_TRUE(Waiting(1));
    Finish(Talk(meet));
    Finish(std::move(first));
  }
  EXPECT_TRUE(Waiting(0));
}

TEST_F(StoreClientTest, BarrierSaysWhyItDoesNotLetThrough) {
  std::future<void> waiter =
      Talk([&] { EXPECT_TRUE(Client().Barrier("b", 3, std::nullopt).ok()); });
  ASSERT_TRUE(Waiting(1));
  Finish(Talk([&] {
    StoreClient store = Client();
    const std::string where = ToString(Daemon().endpoint);
    EXPECT_EQ(store.Barrier("b", 3, milliseconds(20)),
              absl::DeadlineExceededError("2 of 3 reached barrier 'b'"));
    EXPECT_EQ(store.Barrier("b", 3, milliseconds(0)),
              absl::DeadlineExceededError("2 of 3 reached barrier 'b'"));
    EXPECT_EQ(
        store.Barrier("b", 2, kLong),
        absl::FailedPreconditionError(
            where +
            ": barrier 'b': this call expects 2, but the callers already waiting there expect 3"));
  }));
  const auto meet = [&] { EXPECT_TRUE(Client().Barrier("b", 3, kLong).ok()); };
  std::future<void> second = Talk(meet);
  ASSERT_TRUE(Waiting(2));
  Finish(Talk(meet));
  Finish(std::move(second));
  Finish(std::move(waiter));
}

// Each waits again at the daemon that comes after, and counts there once.
TEST_F(StoreClientTest, BarrierOutlivesARestart) {
  const auto meet = [daemon = Daemon()] {
    EXPECT_TRUE(StoreClient(daemon, "job").Barrier("b", 3, std::nullopt).ok());
  };
  std::future<void> first = Talk(meet);
  std::future<void> second = Talk(meet);
  ASSERT_TRUE(Waiting(2));
  const std::uint16_t port = server_->port();
  server_.reset();
  Start(port);
  ASSERT_TRUE(Waiting(2));
  Finish(Talk(meet));
  Finish(std::move(first));
  Finish(std::move(second));
}

// "The daemon was upgraded for the fifth time, and all scripts that waited died with it."
TEST_F(StoreClientTest, WaitOutlivesAnyNumberOfRestarts) {
  std::future<void> waiter = Talk([store = std::make_shared<StoreClient>(Daemon(), "job")] {
    EXPECT_TRUE(store->Wait({"x"}, std::nullopt).ok());
  });
  for (int restart = 0; restart < 8; ++restart) {
    ASSERT_TRUE(Waiting(1));
    const std::uint16_t port = server_->port();
    server_.reset();
    Start(port);
  }
  ASSERT_TRUE(Waiting(1));
  Finish(Talk([&] { EXPECT_TRUE(Client().Set("x", "2").ok()); }));
  Finish(std::move(waiter));
}

// "A barrier of 8 s took 14 s, as its time began anew when the daemon had been restarted." The
// first has a second left of three when the second comes, which has two. (The node that holds the
// job together is missed after two and a half.)
TEST_F(StoreClientTest, BarrierKeepsItsTimeThroughARestart) {
  std::atomic<int> ended = 0;
  const auto give_up = [&ended, daemon = Daemon()](seconds timeout, int turn) {
    EXPECT_EQ(StoreClient(daemon, "job").Barrier("b", 3, timeout),
              absl::DeadlineExceededError("2 of 3 reached barrier 'b'"));
    EXPECT_EQ(ended++, turn);
  };
  std::future<void> first = Talk([&] { give_up(seconds(3), 0); });
  ASSERT_TRUE(Waiting(1));
  EXPECT_FALSE(RunUntil(
      io_, [] { return false; }, seconds(2)));
  const std::uint16_t port = server_->port();
  server_.reset();
  Start(port);
  ASSERT_TRUE(Waiting(1));
  Finish(Talk([&] { give_up(seconds(2), 1); }));
  Finish(std::move(first));
}

TEST_F(StoreClientTest, WaitDoesNotOutliveADaemonThatIsGone) {
  std::future<void> waiter = Talk([store = std::make_shared<StoreClient>(Daemon(), "job")] {
    EXPECT_TRUE(absl::IsUnavailable(store->Wait({"x"}, std::nullopt)));
  });
  ASSERT_TRUE(Waiting(1));
  server_.reset();
  Finish(std::move(waiter));
}

TEST_F(StoreClientTest, NobodyThereIsSaidAtOnce) {
  const DaemonOptions daemon = Daemon();
  server_.reset();
  const std::string expected =
      ToString(daemon.endpoint) + ": nothing is listening there (Connection refused)";
  StoreClient store(daemon, "job");
  EXPECT_EQ(store.Get("k").status(), absl::UnavailableError(expected));
  EXPECT_EQ(store.Wait({"k"}, kLong), absl::UnavailableError(expected));
  EXPECT_EQ(store.Barrier("b", 1, kLong), absl::UnavailableError(expected));
  EXPECT_EQ(ListJobs(daemon).status(), absl::UnavailableError(expected));
}

TEST_F(StoreClientTest, WhoDoesNotAnswerIsNotWaitedForEndlessly) {
  // Its loop does not run.
  DaemonOptions daemon = Daemon();
  daemon.patience = milliseconds(200);
  const absl::Status status = StoreClient(daemon, "job").Set("k", "v");
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), StartsWith(ToString(daemon.endpoint) + ": "));
}

TEST_F(StoreClientTest, JobsAreDescribed) {
  Finish(Talk([&] {
    const auto jobs = ListJobs(Daemon());
    ASSERT_TRUE(jobs.ok()) << jobs.status();
    ASSERT_EQ(jobs->size(), 1u);
    const auto job = DescribeJob(Daemon(), "job");
    ASSERT_TRUE(job.ok()) << job.status();
    for (const JobSnapshot& snapshot : {jobs->front(), *job}) {
      EXPECT_EQ(snapshot.run_id, "job");
      EXPECT_EQ(snapshot.state, JobState::kGathering);
      EXPECT_THAT(snapshot.sentence, StartsWith("round 0: 1 of 2 nodes are here (host1)"));
      EXPECT_EQ(snapshot.nodes.size(), 1u);
    }
  }));
}

}  // namespace
}  // namespace muster::rendezvous
