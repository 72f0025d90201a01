// Questions to a daemon that may be in several places, with a daemon whose answers are scripted.
#include "rendezvous/client/daemon_channel.h"

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/net/grpc_server.h"

namespace muster::rendezvous {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

// One that has just been followed by another says so.
const grpc::Status kLeadsNoLonger(grpc::StatusCode::UNAVAILABLE,
                                  "this daemon is no longer the leader");

// Called by gRPC's threads.
class ScriptedDaemon final : public v1::Rendezvous::Service {
 public:
  grpc::Status List(grpc::ServerContext* context, const v1::ListRequest*,
                    v1::ListResponse* response) override {
    std::function<grpc::Status()> answer = [] { return grpc::Status::OK; };
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      deadlines_.push_back(context->deadline());
      if (!answers_.empty()) {
        answer = std::move(answers_.front());
        answers_.pop_front();
      }
    }
    response->add_jobs()->set_run_id("job");
    return answer();
  }

  // The next call is answered so; those that follow on all of these are answered well.
  void Answer(std::function<grpc::Status()> answer) { answers_.push_back(std::move(answer)); }

  // Of the calls so far.
  std::vector<std::chrono::system_clock::time_point> deadlines() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return deadlines_;
  }

 private:
  std::mutex mutex_;
  std::deque<std::function<grpc::Status()>> answers_;
  std::vector<std::chrono::system_clock::time_point> deadlines_;
};

class JobQueryTest : public testing::Test {
 protected:
  JobQueryTest() {
    InitGrpcRuntime();
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&daemon_);
    server_ = builder.BuildAndStart();
  }

  // Nobody listens at the second place, as of two daemons one stands by.
  DaemonOptions Daemon(bool several_places) const {
    const std::string place = absl::StrCat("127.0.0.1:", port_);
    const auto endpoint = ParseEndpoints(several_places ? place + ",127.0.0.1:1" : place, 0);
    EXPECT_TRUE(endpoint.ok()) << endpoint.status();
    return {.endpoint = *endpoint, .patience = seconds(20)};
  }

  ScriptedDaemon daemon_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// "muster status failed when it asked just as another daemon took over."
TEST_F(JobQueryTest, ADaemonThatLeadsNoLongerIsFollowedByAnotherThatAnswers) {
  daemon_.Answer([] { return kLeadsNoLonger; });
  daemon_.Answer([] { return kLeadsNoLonger; });
  const auto jobs = ListJobs(Daemon(/*several_places=*/true));
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->size(), 1u);
  EXPECT_EQ((*jobs)[0].run_id, "job");
  EXPECT_EQ(daemon_.deadlines().size(), 3u);
}

TEST_F(JobQueryTest, WhereThereIsOnePlaceItsAnswerCounts) {
  daemon_.Answer([] { return kLeadsNoLonger; });
  const auto jobs = ListJobs(Daemon(/*several_places=*/false));
  EXPECT_TRUE(absl::IsUnavailable(jobs.status())) << jobs.status();
  EXPECT_THAT(std::string(jobs.status().message()),
              HasSubstr("this daemon is no longer the leader"));
  EXPECT_EQ(daemon_.deadlines().size(), 1u);
}

TEST_F(JobQueryTest, OtherAnswersAreNotAskedForAgain) {
  daemon_.Answer([] { return grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "not you"); });
  EXPECT_FALSE(ListJobs(Daemon(/*several_places=*/true)).ok());
  EXPECT_EQ(daemon_.deadlines().size(), 1u);
}

// "muster status took twice as long as it says to give up."
TEST_F(JobQueryTest, ALaterAttemptHasWhatTheFormerOnesHaveLeft) {
  constexpr seconds kTaken(2);
  daemon_.Answer([kTaken] {
    std::this_thread::sleep_for(kTaken);
    return kLeadsNoLonger;
  });
  ASSERT_TRUE(ListJobs(Daemon(/*several_places=*/true)).ok());
  const auto deadlines = daemon_.deadlines();
  ASSERT_EQ(deadlines.size(), 2u);
  // They would be the same, but for gRPC's rounding and the way.
  EXPECT_LT(deadlines[1] - deadlines[0], kTaken);
}

}  // namespace
}  // namespace muster::rendezvous
