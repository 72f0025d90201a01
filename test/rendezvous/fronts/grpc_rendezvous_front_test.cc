// The daemon's gRPC interface used by a foreign client: a bare stub that sends what Muster's
// clients never would. It runs on its own thread, while the loop runs here.
#include "rendezvous/fronts/grpc_rendezvous_front.h"

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>
#include <boost/asio/post.hpp>

#include "absl/strings/str_cat.h"
#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/core/values/limits.h"
#include "rendezvous/server/server.h"
#include "rendezvous/wire/wire.h"
#include "test/rendezvous/support/join_request.h"
#include "test/support/run_until.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::RunUntil;
using ::testing::HasSubstr;
using ::testing::StartsWith;

v1::AgentEvent JoinEvent(const JoinRequest& request) {
  v1::AgentEvent event;
  ToWire(request, &event);
  return event;
}

// One stranger's stream, used on the stranger's thread.
struct Stream {
  explicit Stream(v1::Rendezvous::Stub& stub) {
    // A test that waits in vain should fail, not hang.
    context.set_deadline(std::chrono::system_clock::now() + seconds(60));
    stream = stub.Attend(&context);
  }
  bool Write(const v1::AgentEvent& event) { return stream->Write(event); }
  // The kind of the next directive, skipping the Waiting reminders, which come at any time; NOT_SET
  // when the stream has ended.
  v1::Directive::DirectiveCase Read() {
    do {
      directive.Clear();
      if (!stream->Read(&directive)) return v1::Directive::DIRECTIVE_NOT_SET;
    } while (directive.has_waiting());
    return directive.directive_case();
  }
  void Join(const JoinRequest& request) {
    EXPECT_TRUE(Write(JoinEvent(request)));
    EXPECT_EQ(Read(), v1::Directive::kWelcome);
  }
  grpc::Status End() {
    stream->WritesDone();
    return stream->Finish();
  }

  grpc::ClientContext context;
  v1::Directive directive;
  std::unique_ptr<grpc::ClientReaderWriter<v1::AgentEvent, v1::Directive>> stream;
};

class GrpcRendezvousFrontTest : public ::testing::Test {
 protected:
  GrpcRendezvousFrontTest() {
    EXPECT_TRUE(server_.Listen({"127.0.0.1", 0}, Credentials::Plaintext()).ok());
    stub_ = v1::Rendezvous::NewStub(grpc::CreateChannel(absl::StrCat("127.0.0.1:", server_.port()),
                                                        grpc::InsecureChannelCredentials()));
  }

  // Has the stranger talk while the loop runs.
  void Talk(std::function<void()> talk) {
    std::future<void> done = std::async(std::launch::async, std::move(talk));
    EXPECT_TRUE(RunUntil(
        io_, [&] { return done.wait_for(seconds(0)) == std::future_status::ready; }, seconds(90)));
  }
  // Waits until this many agents attend.
  bool Attend(int count) {
    return RunUntil(io_, [&] { return server_.daemon_loop().agent_count() == count; });
  }

  boost::asio::io_context io_;
  Server server_{io_};
  std::unique_ptr<v1::Rendezvous::Stub> stub_;
};

TEST_F(GrpcRendezvousFrontTest, EventsBeforeTheFirstJoinChangeNothing) {
  Talk([&] {
    Stream stream(*stub_);
    v1::AgentEvent event;
    event.mutable_keep_alive();
    EXPECT_TRUE(stream.Write(event));
    event.mutable_workers_started()->set_round(0);
    EXPECT_TRUE(stream.Write(event));
    event.mutable_workers_exited()->set_round(0);
    EXPECT_TRUE(stream.Write(event));
    event.mutable_leaving()->set_reason("none");
    EXPECT_TRUE(stream.Write(event));
    EXPECT_TRUE(stream.Write(v1::AgentEvent{})) << "an event of a newer agent";
    stream.Join(RequestFor(1, 1));
    EXPECT_EQ(stream.Read(), v1::Directive::kStart);
    EXPECT_TRUE(stream.End().ok());
  });
  EXPECT_TRUE(Attend(0));
}

TEST_F(GrpcRendezvousFrontTest, GoodbyeAsTheFirstWordEndsTheStream) {
  Talk([&] {
    Stream stream(*stub_);
    v1::AgentEvent event;
    event.mutable_goodbye();
    EXPECT_TRUE(stream.Write(event));
    EXPECT_EQ(stream.Read(), v1::Directive::DIRECTIVE_NOT_SET);
    EXPECT_TRUE(stream.stream->Finish().ok());
  });
}

TEST_F(GrpcRendezvousFrontTest, StreamThatEndsWithoutAGoodbyeIsALostNode) {
  Talk([&] {
    Stream first(*stub_), second(*stub_);
    first.Join(RequestFor(1, 2));
    second.Join(RequestFor(2, 2));
    EXPECT_EQ(second.Read(), v1::Directive::kStart);
    second.context.TryCancel();
    EXPECT_EQ(first.Read(), v1::Directive::kStart);
    EXPECT_EQ(first.Read(), v1::Directive::kStop);
    EXPECT_THAT(first.directive.stop().reason(), StartsWith("node host2 was lost: its "));
    first.End();
    second.stream->Finish();
  });
  EXPECT_TRUE(Attend(0));
}

TEST_F(GrpcRendezvousFrontTest, SilentAgentIsEvictedWhenItsLeaseEnds) {
  Talk([&] {
    Stream stream(*stub_);
    JoinRequest request = RequestFor(1, 1);
    request.settings.lease = milliseconds(120);
    stream.Join(request);
    EXPECT_EQ(stream.directive.welcome().keep_alive_ms(), 40);
    EXPECT_EQ(stream.Read(), v1::Directive::kStart);
    EXPECT_EQ(stream.Read(), v1::Directive::kEvicted);
    EXPECT_THAT(stream.directive.evicted().sentence(),
                HasSubstr("nothing was heard from this node for 100 ms"));
    // It may join again on the same stream.
    stream.Join(request);
    EXPECT_EQ(stream.Read(), v1::Directive::kStart);
    EXPECT_TRUE(stream.End().ok());
  });
}

TEST_F(GrpcRendezvousFrontTest, AgentOnTheNetworkIsRefusedWithoutALease) {
  Talk([&] {
    Stream stream(*stub_);
    v1::AgentEvent event = JoinEvent(RequestFor(1, 1));
    event.mutable_join()->mutable_settings()->set_lease_ms(0);
    EXPECT_TRUE(stream.Write(event));
    EXPECT_EQ(stream.Read(), v1::Directive::kRefused);
    EXPECT_THAT(stream.directive.refused().sentence(), HasSubstr("lease"));
    stream.stream->Finish();
  });
}

TEST_F(GrpcRendezvousFrontTest, RefusedIsHeardByOneWhoHasAlreadyEndedHisSide) {
  Talk([&] {
    Stream stream(*stub_);
    JoinRequest bad = RequestFor(1, 1);
    bad.run_id = "a\nb";
    EXPECT_TRUE(stream.Write(JoinEvent(bad)));
    stream.stream->WritesDone();
    EXPECT_EQ(stream.Read(), v1::Directive::kRefused);
    EXPECT_THAT(stream.directive.refused().sentence(), HasSubstr("has a control character"));
    EXPECT_TRUE(stream.stream->Finish().ok());
  });
}

// A good Join right after a refused one would leave a node in the job without an attending agent.
TEST_F(GrpcRendezvousFrontTest, WhatComesAfterARefusedJoinIsNotHeard) {
  Talk([&] {
    for (int i = 0; i < 20; ++i) {
      Stream stream(*stub_);
      JoinRequest bad = RequestFor(1, 1);
      bad.node.slots = 0;
      stream.Write(JoinEvent(bad));
      stream.Write(JoinEvent(RequestFor(1, 1)));
      EXPECT_EQ(stream.Read(), v1::Directive::kRefused);
      EXPECT_EQ(stream.Read(), v1::Directive::DIRECTIVE_NOT_SET);
      stream.stream->Finish();
    }
  });
  EXPECT_EQ(server_.daemon_loop().agent_count(), 0);
}

// An agent could keep the daemon's loop busy with meaningless events.
TEST_F(GrpcRendezvousFrontTest, AnAgentInAHurryIsReadLaterAndHeardToTheEnd) {
  Talk([&] {
    Stream stream(*stub_);
    stream.Join(RequestFor(1, 2));
    v1::AgentEvent event;
    event.mutable_keep_alive();
    for (std::uint64_t i = 0; i < limits::kEventsAtOnce.most + 100; ++i) {
      ASSERT_TRUE(stream.Write(event));
      ASSERT_EQ(stream.Read(), v1::Directive::kHeard);
    }
    event.mutable_goodbye();
    EXPECT_TRUE(stream.Write(event));
    while (stream.Read() != v1::Directive::DIRECTIVE_NOT_SET) {
    }
    EXPECT_TRUE(stream.stream->Finish().ok());
  });
  EXPECT_TRUE(Attend(0));
}

// A daemon could crash when the stream of a throttled agent ended: its next event was queued on the
// loop, after the end. (Only the address sanitizer always detects that.)
TEST_F(GrpcRendezvousFrontTest, AStreamMayEndWhileTheNextEventOfAnAgentInAHurryIsDue) {
  bool heard = false;
  std::future<void> done = std::async(std::launch::async, [&] {
    Stream stream(*stub_);
    stream.Join(RequestFor(1, 2));
    v1::AgentEvent event;
    event.mutable_keep_alive();
    // The token bucket refills meanwhile.
    for (std::uint64_t i = 0; i < limits::kEventsAtOnce.most + 400; ++i) {
      ASSERT_TRUE(stream.Write(event));
      ASSERT_EQ(stream.Read(), v1::Directive::kHeard);
    }
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(stream.Write(event));
    boost::asio::post(io_, [&heard] { heard = true; });
    while (stream.Read() != v1::Directive::DIRECTIVE_NOT_SET) {
    }
    stream.stream->Finish();
  });
  ASSERT_TRUE(RunUntil(io_, [&] { return heard; }));
  bool stopped = false;
  server_.Stop([&stopped] { stopped = true; });
  // gRPC is done with the stream, and the delay until the next event is over, before the loop
  // continues.
  done.wait();
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_TRUE(RunUntil(io_, [&] { return stopped; }));
  io_.poll();
}

TEST_F(GrpcRendezvousFrontTest, EventThatIsTooLargeEndsTheStream) {
  // Above the front's limit, and above that of gRPC's server.
  for (const std::size_t bytes : {std::size_t{1} << 21, std::size_t{5} << 20}) {
    Talk([&] {
      Stream stream(*stub_);
      stream.Join(RequestFor(1, 2));
      v1::AgentEvent event;
      event.mutable_leaving()->set_reason(std::string(bytes, 'x'));
      stream.Write(event);
      EXPECT_EQ(stream.Read(), v1::Directive::DIRECTIVE_NOT_SET);
      stream.stream->Finish();
    });
    EXPECT_TRUE(Attend(0)) << bytes;
  }
}

TEST_F(GrpcRendezvousFrontTest, JoinUnderTheNameOfAnotherNodeIsRefused) {
  Talk([&] {
    Stream first(*stub_), second(*stub_);
    first.Join(RequestFor(1, 2));
    EXPECT_TRUE(second.Write(JoinEvent(RequestFor(1, 2))));
    EXPECT_EQ(second.Read(), v1::Directive::kRefused);
    EXPECT_THAT(second.directive.refused().sentence(), HasSubstr("already attends"));
    second.stream->Finish();
    first.End();
  });
}

TEST_F(GrpcRendezvousFrontTest, DaemonThatEndsEndsTheStreamsOfAll) {
  bool stopped = false;
  Talk([&] {
    Stream stream(*stub_);
    stream.Join(RequestFor(1, 2));
    boost::asio::post(io_, [&] { server_.Stop([&] { stopped = true; }); });
    EXPECT_EQ(stream.Read(), v1::Directive::DIRECTIVE_NOT_SET);
    stream.stream->Finish();
  });
  EXPECT_TRUE(RunUntil(io_, [&] { return stopped; }));
  EXPECT_EQ(server_.daemon_loop().agent_count(), 0);
}

TEST_F(GrpcRendezvousFrontTest, DescribeShowsTheJobAndItsNodes) {
  Talk([&] {
    Stream stream(*stub_);
    stream.Join(RequestFor(1, 2));
    grpc::ClientContext context;
    v1::DescribeRequest request;
    v1::JobDescription job;
    request.set_run_id("job");
    EXPECT_TRUE(stub_->Describe(&context, request, &job).ok());
    EXPECT_EQ(job.run_id(), "job");
    EXPECT_EQ(job.state(), v1::JobDescription::GATHERING);
    EXPECT_EQ(job.round(), 0);
    EXPECT_THAT(job.sentence(), HasSubstr("1 of 2 nodes"));
    EXPECT_EQ(job.settings().max_nodes(), 2);
    ASSERT_EQ(job.nodes_size(), 1);
    EXPECT_EQ(job.nodes(0).node().host(), "host1");
    EXPECT_EQ(job.nodes(0).state(), v1::NodeDescription::JOINED);
    EXPECT_EQ(job.nodes(0).group_rank(), -1);
    stream.End();
  });
}

TEST_F(GrpcRendezvousFrontTest, DescribeOfAJobThatIsNotHereIsNotFound) {
  Talk([&] {
    grpc::ClientContext context;
    v1::DescribeRequest request;
    v1::JobDescription job;
    request.set_run_id("no\nsuch\x1bjob");
    const grpc::Status status = stub_->Describe(&context, request, &job);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
    EXPECT_EQ(status.error_message(), "no job 'no such?job' here");
  });
}

TEST_F(GrpcRendezvousFrontTest, ListShowsEveryJobInOrder) {
  Talk([&] {
    std::vector<std::unique_ptr<Stream>> streams;
    for (const char* run_id : {"b", "a", "c"}) {
      JoinRequest request = RequestFor(1, 1);
      request.run_id = run_id;
      streams.push_back(std::make_unique<Stream>(*stub_));
      streams.back()->Join(request);
    }
    grpc::ClientContext context;
    v1::ListResponse list;
    EXPECT_TRUE(stub_->List(&context, {}, &list).ok());
    ASSERT_EQ(list.jobs_size(), 3);
    EXPECT_EQ(list.jobs(0).run_id(), "a");
    EXPECT_EQ(list.jobs(1).run_id(), "b");
    EXPECT_EQ(list.jobs(2).run_id(), "c");
    EXPECT_EQ(list.jobs(2).state(), v1::JobDescription::RUNNING);
    for (const auto& stream : streams) {
      stream->context.TryCancel();
      stream->stream->Finish();
    }
  });
}

}  // namespace
}  // namespace muster::rendezvous
