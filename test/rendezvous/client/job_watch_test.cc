// A tool that goes on looking, through a daemon that goes and comes.
#include "rendezvous/client/job_watch.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/server/server.h"
#include "test/rendezvous/support/join_request.h"
#include "test/support/run_until.h"

namespace muster::rendezvous {
namespace {

using test::RunUntil;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Seen final : JobWatch::Listener {
  void OnJobs(const WatchedJobs& watched) override { jobs.push_back(watched); }
  void OnOutOfTouch(const std::string& why) override { trouble.push_back(why); }
  void OnOver(const absl::Status& status) override {
    over = status;
    if (on_over) on_over();
  }

  std::vector<WatchedJobs> jobs;
  std::vector<std::string> trouble;
  std::optional<absl::Status> over;
  std::function<void()> on_over;
};

class JobWatchTest : public ::testing::Test {
 protected:
  JobWatchTest() { Start({"127.0.0.1", 0}); }
  ~JobWatchTest() override {
    watch_.reset();
    server_.reset();
    io_.restart();
    io_.run();
  }

  void Start(const Endpoint& endpoint) {
    server_ = std::make_unique<Server>(io_);
    const absl::Status status = server_->Listen(endpoint, Credentials::Plaintext());
    ASSERT_TRUE(status.ok()) << status;
    endpoint_ = {"127.0.0.1", server_->port()};
  }
  void Watch(const std::string& run_id = "") {
    watch_.emplace(io_, DaemonOptions{.endpoint = endpoint_}, run_id, seen_);
  }
  AgentId Join() {
    const AgentId agent = server_->daemon_loop().Attach([this](const Directive& directive) {
      if (const auto* const assignment = std::get_if<Assignment>(&directive)) {
        round_ = assignment->id();
      }
    });
    JoinRequest request = RequestFor(1, 1);
    request.settings.lease = Duration::zero();
    server_->daemon_loop().Hear(agent, request);
    return agent;
  }
  std::string Where() const { return ToString(endpoint_); }

  boost::asio::io_context io_;
  std::unique_ptr<Server> server_;
  Endpoint endpoint_;
  Seen seen_;
  RoundId round_;
  std::optional<JobWatch> watch_;
};

TEST_F(JobWatchTest, JobIsSeenFromItsBeginningToItsEnd) {
  const AgentId agent = Join();
  Watch("job");
  ASSERT_TRUE(RunUntil(io_, [&] { return !seen_.jobs.empty(); }));
  ASSERT_EQ(seen_.jobs.back().jobs.size(), 1u);
  EXPECT_EQ(seen_.jobs.back().jobs[0].state, JobState::kRunning);
  server_->daemon_loop().Hear(agent, WorkersExited{round_, {.succeeded = true}});
  ASSERT_TRUE(RunUntil(io_, [&] { return seen_.over.has_value(); }));
  EXPECT_TRUE(seen_.over->ok());
  ASSERT_EQ(seen_.jobs.back().ended.size(), 1u);
  EXPECT_EQ(seen_.jobs.back().ended[0].kind, VerdictKind::kSucceeded);
}

// "The page comes back by itself, and the terminal did not."
TEST_F(JobWatchTest, DaemonThatComesBackIsWatchedAgain) {
  Watch();
  ASSERT_TRUE(RunUntil(io_, [&] { return !seen_.jobs.empty(); }));
  server_.reset();
  ASSERT_TRUE(RunUntil(io_, [&] { return !seen_.trouble.empty(); }));
  EXPECT_EQ(seen_.trouble.front(), Where() + ": the daemon is stopping");
  // While nobody is there.
  ASSERT_TRUE(RunUntil(io_, [&] { return seen_.trouble.size() > 1; }));
  EXPECT_THAT(seen_.trouble.back(), StartsWith(Where() + ": nothing is listening there"));
  const std::size_t seen = seen_.jobs.size();
  Start(endpoint_);
  Join();
  ASSERT_TRUE(RunUntil(io_, [&] { return seen_.jobs.size() > seen; }));
  ASSERT_EQ(seen_.jobs.back().jobs.size(), 1u);
  EXPECT_FALSE(seen_.over.has_value());
}

TEST_F(JobWatchTest, WhereNobodyIsItIsOverAtOnce) {
  server_.reset();
  Watch();
  ASSERT_TRUE(RunUntil(io_, [&] { return seen_.over.has_value(); }));
  EXPECT_TRUE(absl::IsUnavailable(*seen_.over));
  EXPECT_THAT(std::string(seen_.over->message()), StartsWith(Where() + ": nothing is listening"));
}

TEST_F(JobWatchTest, JobThatIsNotThereIsSaid) {
  Watch("none");
  ASSERT_TRUE(RunUntil(io_, [&] { return seen_.over.has_value(); }));
  EXPECT_TRUE(absl::IsNotFound(*seen_.over));
  EXPECT_THAT(std::string(seen_.over->message()), HasSubstr("no job 'none' here"));
}

TEST_F(JobWatchTest, WatchMayBeDestroyedByWhatItTells) {
  seen_.on_over = [this] { watch_.reset(); };
  Watch("none");
  ASSERT_TRUE(RunUntil(io_, [&] { return seen_.over.has_value(); }));
}

TEST_F(JobWatchTest, WatchMayBeDestroyedAtAnyMoment) {
  for (int turns = 0; turns < 60; ++turns) {
    Watch();
    for (int turn = 0; turn < turns; ++turn) io_.run_one_for(std::chrono::milliseconds(1));
    watch_.reset();
  }
  Watch();
  EXPECT_TRUE(RunUntil(io_, [&, seen = seen_.jobs.size()] { return seen_.jobs.size() > seen; }));
}

}  // namespace
}  // namespace muster::rendezvous
