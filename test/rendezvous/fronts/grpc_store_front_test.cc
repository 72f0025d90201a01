// Real clients with a real gRPC server on a free port of this machine, with the loop on its own
// thread. The tests ask the front, on the loop, whether waits are pending, so that nothing depends
// on timing.
#include "rendezvous/fronts/grpc_store_front.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <limits>
#include <map>
#include <thread>
#include <type_traits>
#include <vector>

#include <grpcpp/grpcpp.h>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include "absl/strings/str_cat.h"
#include "proto/store.grpc.pb.h"
#include "test/rendezvous/support/fake_journal.h"
#include "test/rendezvous/support/join_request.h"
#include "test/support/run_until.h"

namespace muster::rendezvous {
namespace {

using store::v1::Store;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kPatience(60);

class GrpcStoreFrontTest : public ::testing::Test {
 protected:
  GrpcStoreFrontTest() {
    // A job has a store as long as an agent attends it.
    for (const char* run_id : {"job-1", "job-2"}) {
      JoinRequest request = RequestFor(1, 2);
      request.run_id = run_id;
      agents_[run_id] = daemon_loop_.Attach([](const Directive&) {});
      daemon_loop_.Hear(agents_[run_id], request);
    }
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterCallbackGenericService(&router_);
    server_ = builder.BuildAndStart();
    stub_ = NewStub();
    loop_thread_ = std::thread([this] { loop_.run(); });
  }

  // The result of `ask`, called on the loop.
  template <typename Ask>
  std::invoke_result_t<Ask> OnLoop(Ask ask) {
    std::packaged_task<std::invoke_result_t<Ask>()> task(std::move(ask));
    auto answer = task.get_future();
    boost::asio::post(loop_, [task = std::move(task)]() mutable { task(); });
    return answer.get();
  }

  ~GrpcStoreFrontTest() override {
    Close();
    server_->Shutdown();
    guard_.reset();
    loop_thread_.join();
  }

  void Close() {
    OnLoop([this] {
      router_.Close();
      front_.Close();
    });
  }

  std::unique_ptr<Store::Stub> NewStub() {
    return Store::NewStub(
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", port_), grpc::InsecureChannelCredentials()));
  }

  // Waits until this many calls wait at the front.
  void ExpectWaitingCalls(std::size_t count) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (OnLoop([this] { return daemon_loop_.waiting_calls(); }) != count) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline)
          << "never " << count << " waiting calls";
      std::this_thread::yield();
    }
  }

  // The calls that most tests use, on job-1.
  grpc::Status Set(const std::string& key, const std::string& value,
                   const std::string& run_id = "job-1") {
    grpc::ClientContext context;
    store::v1::SetRequest request;
    store::v1::SetResponse response;
    request.set_run_id(run_id);
    request.set_key(key);
    request.set_value(value);
    return stub_->Set(&context, request, &response);
  }

  struct GetResult {
    grpc::Status status;
    std::string value;
  };
  GetResult Get(const std::string& key, std::optional<std::uint64_t> timeout_ms = {},
                const std::string& run_id = "job-1") {
    grpc::ClientContext context;
    store::v1::GetRequest request;
    store::v1::GetResponse response;
    request.set_run_id(run_id);
    request.set_key(key);
    if (timeout_ms) request.set_timeout_ms(*timeout_ms);
    grpc::Status status = stub_->Get(&context, request, &response);
    return {std::move(status), response.value()};
  }

  grpc::Status Wait(grpc::ClientContext& context, const std::vector<std::string>& keys,
                    std::optional<std::uint64_t> timeout_ms = {},
                    const std::string& run_id = "job-1") {
    store::v1::WaitRequest request;
    store::v1::WaitResponse response;
    request.set_run_id(run_id);
    for (const std::string& key : keys) request.add_keys(key);
    if (timeout_ms) request.set_timeout_ms(*timeout_ms);
    return stub_->Wait(&context, request, &response);
  }

  // A Wait on another thread.
  std::future<grpc::Status> StartWait(grpc::ClientContext& context, std::vector<std::string> keys,
                                      std::optional<std::uint64_t> timeout_ms = {},
                                      std::string run_id = "job-1") {
    return std::async(std::launch::async,
                      [=, this, &context] { return Wait(context, keys, timeout_ms, run_id); });
  }

  // A Barrier on another thread; `caller` and `timeout_ms` may be absent.
  std::future<grpc::Status> StartBarrier(grpc::ClientContext& context, std::uint64_t count,
                                         const std::string& caller = "",
                                         std::optional<std::uint64_t> timeout_ms = {}) {
    return std::async(std::launch::async, [=, this, &context] {
      store::v1::BarrierRequest request;
      store::v1::BarrierResponse response;
      request.set_run_id("job-1");
      request.set_name("b");
      request.set_count(count);
      request.set_caller(caller);
      if (timeout_ms) request.set_timeout_ms(*timeout_ms);
      return stub_->Barrier(&context, request, &response);
    });
  }

  boost::asio::io_context loop_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_{
      loop_.get_executor()};
  DaemonLoop daemon_loop_{loop_, nullptr};  // on the loop
  std::map<std::string, AgentId> agents_;
  // The answer to the front's question whether a call may wait; on the loop.
  absl::StatusOr<std::shared_ptr<void>> admission_ = nullptr;
  RpcRouter router_{
      loop_, {.access = [this](Rpc, const grpc::CallbackServerContext&) { return &daemon_loop_; }}};
  GrpcStoreFront front_{router_, [this](const Peer& peer) {
                          EXPECT_EQ(peer.address, "127.0.0.1");
                          return admission_;
                        }};
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Store::Stub> stub_;
  std::thread loop_thread_;
};

MATCHER_P2(Is, code, message, "") {
  *result_listener << arg.error_code() << ": " << arg.error_message();
  return arg.error_code() == code && arg.error_message() == message;
}

// One call of each rpc with a run id, all else empty.
template <typename Request, typename Response>
grpc::Status CallWith(Store::Stub& stub,
                      grpc::Status (Store::Stub::*rpc)(grpc::ClientContext*, const Request&,
                                                       Response*),
                      const std::string& run_id) {
  grpc::ClientContext context;
  Request request;
  Response response;
  request.set_run_id(run_id);
  return (stub.*rpc)(&context, request, &response);
}

std::vector<grpc::Status> CallEachRpc(Store::Stub& stub, const std::string& run_id) {
  return {CallWith(stub, &Store::Stub::Get, run_id),
          CallWith(stub, &Store::Stub::Set, run_id),
          CallWith(stub, &Store::Stub::Add, run_id),
          CallWith(stub, &Store::Stub::CompareSet, run_id),
          CallWith(stub, &Store::Stub::Append, run_id),
          CallWith(stub, &Store::Stub::Delete, run_id),
          CallWith(stub, &Store::Stub::Check, run_id),
          CallWith(stub, &Store::Stub::Wait, run_id),
          CallWith(stub, &Store::Stub::Barrier, run_id),
          CallWith(stub, &Store::Stub::NumKeys, run_id),
          CallWith(stub, &Store::Stub::MultiGet, run_id),
          CallWith(stub, &Store::Stub::MultiSet, run_id)};
}

TEST_F(GrpcStoreFrontTest, ValuesAreWrittenReadAndRemoved) {
  const std::string bytes("\0\xff//", 4);
  EXPECT_TRUE(Set(bytes, bytes).ok());
  EXPECT_EQ(Get(bytes).value, bytes);
  EXPECT_THAT(Get("nobody").status, Is(grpc::StatusCode::NOT_FOUND, "get 'nobody': no such key"));

  grpc::ClientContext append_context;
  store::v1::AppendRequest append;
  store::v1::AppendResponse appended;
  append.set_run_id("job-1");
  append.set_key(bytes);
  append.set_suffix("more");
  EXPECT_TRUE(stub_->Append(&append_context, append, &appended).ok());
  EXPECT_EQ(Get(bytes).value, bytes + "more");

  for (const bool existed : {true, false}) {
    grpc::ClientContext context;
    store::v1::DeleteRequest request;
    store::v1::DeleteResponse response;
    request.set_run_id("job-1");
    request.set_key(bytes);
    EXPECT_TRUE(stub_->Delete(&context, request, &response).ok());
    EXPECT_EQ(response.deleted(), existed);
  }
}

TEST_F(GrpcStoreFrontTest, AddAnswersTheSumOrWhyThereIsNone) {
  const auto add = [this](std::int64_t delta, std::int64_t* sum) {
    grpc::ClientContext context;
    store::v1::AddRequest request;
    store::v1::AddResponse response;
    request.set_run_id("job-1");
    request.set_key("n");
    request.set_delta(delta);
    grpc::Status status = stub_->Add(&context, request, &response);
    *sum = response.value();
    return status;
  };
  std::int64_t sum = 0;
  EXPECT_TRUE(add(-7, &sum).ok());
  EXPECT_EQ(sum, -7);
  EXPECT_EQ(Get("n").value, "-7");
  // "The counter became negative, without any error."
  EXPECT_THAT(add(std::numeric_limits<std::int64_t>::min(), &sum),
              Is(grpc::StatusCode::OUT_OF_RANGE, "add to 'n': the sum does not fit in 64 bits"));
  EXPECT_EQ(Get("n").value, "-7");
  EXPECT_TRUE(Set("n", "9223372036854775808").ok());
  EXPECT_THAT(add(1, &sum),
              Is(grpc::StatusCode::OUT_OF_RANGE, "add to 'n': the value does not fit in 64 bits"));
  EXPECT_TRUE(Set("n", "seven").ok());
  EXPECT_THAT(add(1, &sum),
              Is(grpc::StatusCode::FAILED_PRECONDITION, "add to 'n': the value is not a number"));
}

TEST_F(GrpcStoreFrontTest, CompareSetAnswersWhatIsThereNow) {
  const auto compare_set = [this](const std::string& expected, const std::string& desired) {
    grpc::ClientContext context;
    store::v1::CompareSetRequest request;
    store::v1::CompareSetResponse response;
    request.set_run_id("job-1");
    request.set_key("leader");
    request.set_expected(expected);
    request.set_desired(desired);
    EXPECT_TRUE(stub_->CompareSet(&context, request, &response).ok());
    return std::pair(response.stored(), response.value());
  };
  EXPECT_EQ(compare_set("a", "b"), std::pair(false, std::string("a")));
  EXPECT_EQ(compare_set("", "b"), std::pair(true, std::string("b")));
  EXPECT_EQ(compare_set("a", "c"), std::pair(false, std::string("b")));
}

TEST_F(GrpcStoreFrontTest, SeveralKeysAreWrittenCheckedCountedAndReadAtOnce) {
  grpc::ClientContext set_context;
  store::v1::MultiSetRequest set;
  store::v1::MultiSetResponse set_done;
  set.set_run_id("job-1");
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::string>>{{"a", "1"}, {"b", ""}, {"a", "2"}}) {
    store::v1::KeyValue* entry = set.add_entries();
    entry->set_key(key);
    entry->set_value(value);
  }
  EXPECT_TRUE(stub_->MultiSet(&set_context, set, &set_done).ok());

  grpc::ClientContext get_context;
  store::v1::MultiGetRequest get;
  store::v1::MultiGetResponse values;
  get.set_run_id("job-1");
  for (const char* key : {"a", "nobody", "b"}) get.add_keys(key);
  EXPECT_TRUE(stub_->MultiGet(&get_context, get, &values).ok());
  ASSERT_EQ(values.values_size(), 3);
  EXPECT_EQ(values.values(0).value(), "2");
  EXPECT_FALSE(values.values(1).has_value());
  EXPECT_TRUE(values.values(2).has_value());

  store::v1::CheckRequest check;
  store::v1::CheckResponse checked;
  check.set_run_id("job-1");
  check.add_keys("a");
  check.add_keys("b");
  for (const bool all_exist : {true, false}) {
    grpc::ClientContext context;
    EXPECT_TRUE(stub_->Check(&context, check, &checked).ok());
    EXPECT_EQ(checked.all_exist(), all_exist);
    check.add_keys("nobody");
  }

  for (const auto& [run_id, count] : {std::pair("job-1", 2u), std::pair("job-2", 0u)}) {
    grpc::ClientContext context;
    store::v1::NumKeysRequest request;
    store::v1::NumKeysResponse response;
    request.set_run_id(run_id);
    EXPECT_TRUE(stub_->NumKeys(&context, request, &response).ok());
    EXPECT_EQ(response.num_keys(), count) << run_id;
  }
}

TEST_F(GrpcStoreFrontTest, WaitIsAnsweredByALaterSetOfTheSameJob) {
  grpc::ClientContext context;
  ASSERT_TRUE(Set("first", "").ok());
  std::future<grpc::Status> wait = StartWait(context, {"first", "second"});
  ExpectWaitingCalls(1);
  EXPECT_TRUE(Set("second", "", "job-2").ok());
  EXPECT_EQ(OnLoop([this] { return daemon_loop_.waiting_calls(); }), 1u);
  EXPECT_TRUE(Set("second", "").ok());
  EXPECT_TRUE(wait.get().ok());
  ExpectWaitingCalls(0);

  grpc::ClientContext at_once;
  EXPECT_TRUE(Wait(at_once, {"first", "second"}).ok());
}

TEST_F(GrpcStoreFrontTest, GetWithATimeoutAnswersTheValueOnceItIsThere) {
  auto get = std::async(std::launch::async, [this] {
    // Longer than the clock can represent: equivalent to no timeout.
    return Get("late", std::numeric_limits<std::uint64_t>::max());
  });
  ExpectWaitingCalls(1);
  EXPECT_TRUE(Set("late", "value").ok());
  const GetResult result = get.get();
  EXPECT_TRUE(result.status.ok());
  EXPECT_EQ(result.value, "value");
  EXPECT_EQ(Get("late", 0).value, "value");
}

TEST_F(GrpcStoreFrontTest, WaitThatItsClientCancelsIsForgotten) {
  grpc::ClientContext context;
  std::future<grpc::Status> wait = StartWait(context, {"never"}, 3'600'000);
  ExpectWaitingCalls(1);
  context.TryCancel();
  EXPECT_EQ(wait.get().error_code(), grpc::StatusCode::CANCELLED);
  ExpectWaitingCalls(0);
  EXPECT_TRUE(Set("never", "after all").ok());
}

TEST_F(GrpcStoreFrontTest, WaitThatOutlivesTheCallsDeadlineIsForgotten) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
  EXPECT_EQ(Wait(context, {"never"}).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  ExpectWaitingCalls(0);
}

TEST_F(GrpcStoreFrontTest, WaitEndsAtItsTimeoutAlsoBehindALongerOne) {
  grpc::ClientContext long_context;
  std::future<grpc::Status> long_wait = StartWait(long_context, {"never"}, 3'600'000, "job-2");
  ExpectWaitingCalls(1);
  for (const std::uint64_t timeout_ms : {30, 0, 20}) {
    grpc::ClientContext context;
    EXPECT_THAT(
        Wait(context, {"never"}, timeout_ms),
        Is(grpc::StatusCode::DEADLINE_EXCEEDED, "wait: not all of the keys were set in time"));
    EXPECT_EQ(Get("never", timeout_ms).status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  ExpectWaitingCalls(1);
  EXPECT_TRUE(Set("never", "after all", "job-2").ok());
  EXPECT_TRUE(long_wait.get().ok());
}

// One of three callers died at the barrier: the others got through on the next use, as if it were
// still there.
TEST_F(GrpcStoreFrontTest, BarrierCountsThoseWhoWait) {
  std::vector<grpc::ClientContext> contexts(4);
  std::future<grpc::Status> first = StartBarrier(contexts[0], 3);
  std::future<grpc::Status> killed = StartBarrier(contexts[1], 3);
  ExpectWaitingCalls(2);
  contexts[1].TryCancel();
  EXPECT_EQ(killed.get().error_code(), grpc::StatusCode::CANCELLED);
  ExpectWaitingCalls(1);
  std::future<grpc::Status> second = StartBarrier(contexts[2], 3);
  ExpectWaitingCalls(2);
  EXPECT_TRUE(StartBarrier(contexts[3], 3).get().ok());
  EXPECT_TRUE(first.get().ok());
  EXPECT_TRUE(second.get().ok());
  ExpectWaitingCalls(0);
}

TEST_F(GrpcStoreFrontTest, BarrierRefusesAnotherCountAndCountsACallerOnce) {
  std::vector<grpc::ClientContext> contexts(4);
  EXPECT_THAT(StartBarrier(contexts[0], 0).get(),
              Is(grpc::StatusCode::INVALID_ARGUMENT, "barrier 'b': the count must be at least 1"));
  std::future<grpc::Status> first = StartBarrier(contexts[1], 2, "me");
  ExpectWaitingCalls(1);
  EXPECT_THAT(
      StartBarrier(contexts[2], 3).get(),
      Is(grpc::StatusCode::FAILED_PRECONDITION,
         "barrier 'b': this call expects 3, but the callers already waiting there expect 2"));
  EXPECT_THAT(StartBarrier(contexts[3], 2, "me", 20).get(),
              Is(grpc::StatusCode::DEADLINE_EXCEEDED, "1 of 2 reached barrier 'b'"));
  EXPECT_THAT(first.get(),
              Is(grpc::StatusCode::ABORTED, "barrier 'b': the same caller called again"));
  ExpectWaitingCalls(0);
}

TEST_F(GrpcStoreFrontTest, WaitsOfAJobThatEndsAreAbortedAndThoseOfOthersAreNot) {
  grpc::ClientContext first_context, second_context, other_context;
  std::future<grpc::Status> first = StartWait(first_context, {"never"});
  std::future<grpc::Status> second = StartWait(second_context, {"never"}, 3'600'000);
  std::future<grpc::Status> other = StartWait(other_context, {"later"}, {}, "job-2");
  ExpectWaitingCalls(3);
  OnLoop([this] { daemon_loop_.Hear(agents_["job-1"], Goodbye{}); });
  EXPECT_THAT(first.get(), Is(grpc::StatusCode::ABORTED, "job 'job-1' has ended"));
  EXPECT_THAT(second.get(), Is(grpc::StatusCode::ABORTED, "job 'job-1' has ended"));
  EXPECT_THAT(Set("k", "v"),
              Is(grpc::StatusCode::NOT_FOUND,
                 "the job has ended: job 'job-1' was closed: its last node has left"));
  EXPECT_TRUE(Set("later", "", "job-2").ok());
  EXPECT_TRUE(other.get().ok());
}

TEST_F(GrpcStoreFrontTest, ClosedFrontFailsWaitingAndLaterCalls) {
  grpc::ClientContext context;
  std::future<grpc::Status> wait = StartWait(context, {"never"});
  ExpectWaitingCalls(1);
  Close();
  EXPECT_THAT(wait.get(), Is(grpc::StatusCode::UNAVAILABLE, "the daemon is stopping"));
  for (const grpc::Status& status : CallEachRpc(*stub_, "job-1")) {
    EXPECT_THAT(status, Is(grpc::StatusCode::UNAVAILABLE, "the daemon is stopping"));
  }
}

TEST_F(GrpcStoreFrontTest, BreachOfALimitIsResourceExhausted) {
  EXPECT_TRUE(Set("big", std::string(1 << 20, 'v')).ok());
  EXPECT_THAT(Set("bigger", std::string((1 << 20) + 1, 'v')),
              Is(grpc::StatusCode::RESOURCE_EXHAUSTED,
                 "set 'bigger': bytes of the value would be 1048577, the limit is 1048576"));
  EXPECT_THAT(Set(std::string(513, 'k'), "").error_message(), HasSubstr("key are 513"));
  grpc::ClientContext wait_context;
  EXPECT_EQ(Wait(wait_context, {std::string(513, 'k')}).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);

  // A small request whose answer would be large.
  grpc::ClientContext context;
  store::v1::MultiGetRequest request;
  store::v1::MultiGetResponse response;
  request.set_run_id("job-1");
  for (int i = 0; i < 10'000; ++i) request.add_keys("big");
  const grpc::Status status = stub_->MultiGet(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("ask for fewer keys at once"));

  const LimitCounts refused = OnLoop([this] { return router_.RefusedByLimit(); });
  EXPECT_EQ(refused.of(limits::kValueBytes), 1u);
  EXPECT_EQ(refused.of(limits::kKeyBytes), 2u);
  EXPECT_EQ(refused.of(limits::kAnswerBytes), 1u);
  EXPECT_EQ(refused.of(limits::kStoreBytes), 0u);
}

TEST_F(GrpcStoreFrontTest, EveryRpcRefusesARunIdThatIsNoName) {
  for (const std::string& run_id : {std::string(), std::string("a\nb"), std::string(256, 'x')}) {
    for (const grpc::Status& status : CallEachRpc(*stub_, run_id)) {
      EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << run_id;
      EXPECT_THAT(status.error_message(), HasSubstr("run id "));
    }
  }
}

TEST_F(GrpcStoreFrontTest, EveryRpcSaysWhenThereIsNoSuchJob) {
  for (const grpc::Status& status : CallEachRpc(*stub_, "job-3")) {
    EXPECT_THAT(status, Is(grpc::StatusCode::NOT_FOUND, "no job 'job-3' here"));
  }
}

TEST_F(GrpcStoreFrontTest, EightClientsAddingAtOnceGiveTheExactSum) {
  constexpr int kClients = 8;
  constexpr int kAdds = 250;
  std::vector<std::thread> clients;
  for (int client = 0; client < kClients; ++client) {
    clients.emplace_back([this] {
      const std::unique_ptr<Store::Stub> stub = NewStub();
      for (int i = 0; i < kAdds; ++i) {
        grpc::ClientContext context;
        store::v1::AddRequest request;
        store::v1::AddResponse response;
        request.set_run_id("job-1");
        request.set_key("sum");
        request.set_delta(3);
        EXPECT_TRUE(stub->Add(&context, request, &response).ok());
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(Get("sum").value, absl::StrCat(kClients * kAdds * 3));
}

// The connection of a waiting call is held for just as long.
TEST_F(GrpcStoreFrontTest, WhatIsHeldForACallIsLetGoWithIt) {
  const auto token = std::make_shared<int>();
  OnLoop([&] { admission_ = std::shared_ptr<void>(token); });
  grpc::ClientContext context;
  auto wait = StartWait(context, {"k"});
  ExpectWaitingCalls(1);
  EXPECT_EQ(OnLoop([&] { return token.use_count(); }), 3);
  ASSERT_TRUE(Set("k", "v").ok());
  EXPECT_TRUE(wait.get().ok());
  EXPECT_EQ(OnLoop([&] { return token.use_count(); }), 2);
}

TEST_F(GrpcStoreFrontTest, CallThatMustNotWaitIsToldWhyAndOthersAreAnswered) {
  OnLoop([this] { admission_ = absl::ResourceExhaustedError("no descriptors"); });
  grpc::ClientContext wait_context, barrier_context;
  EXPECT_THAT(StartWait(wait_context, {"k"}).get(),
              Is(grpc::StatusCode::RESOURCE_EXHAUSTED, "no descriptors"));
  EXPECT_THAT(StartBarrier(barrier_context, 2).get(),
              Is(grpc::StatusCode::RESOURCE_EXHAUSTED, "no descriptors"));
  ExpectWaitingCalls(0);
  EXPECT_TRUE(Set("k", "v").ok());
  grpc::ClientContext there;
  EXPECT_TRUE(StartWait(there, {"k"}).get().ok());
}

// A waiting call was answered by a Set, and cancelled while the answer waited for the disk: the
// daemon's loop spun forever, answered nothing, and ignored SIGTERM.
TEST(DurableGrpcStoreFrontTest, CallCancelledWhileItsAnswerWaitsForTheDiskHarmsNobody) {
  boost::asio::io_context loop;
  FakeJournal journal;
  DaemonLoop daemon_loop(loop, nullptr, {.durable = true});
  daemon_loop.UseJournal(journal, [](const absl::Status&) {});
  RpcRouter router(
      loop, {.access = [&](Rpc, const grpc::CallbackServerContext&) { return &daemon_loop; }});
  GrpcStoreFront front(router);
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterCallbackGenericService(&router);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  const std::unique_ptr<Store::Stub> stub = Store::NewStub(
      grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials()));
  const auto until = [&loop](auto done) { ASSERT_TRUE(test::RunUntil(loop, done)); };
  daemon_loop.Hear(daemon_loop.Attach([](const Directive&) {}), [] {
    JoinRequest request = RequestFor(1, 1);
    request.session = "session";
    return request;
  }());
  until([&] { return journal.busy(); });
  journal.End(absl::OkStatus());

  grpc::ClientContext wait_context, get_context;
  std::future<grpc::Status> wait = std::async(std::launch::async, [&] {
    store::v1::WaitRequest request;
    store::v1::WaitResponse response;
    request.set_run_id("job");
    request.add_keys("k");
    return stub->Wait(&wait_context, request, &response);
  });
  std::future<grpc::Status> get = std::async(std::launch::async, [&] {
    store::v1::GetRequest request;
    store::v1::GetResponse response;
    request.set_run_id("job");
    request.set_key("k");
    request.set_timeout_ms(3'600'000);
    return stub->Get(&get_context, request, &response);
  });
  until([&] { return daemon_loop.waiting_calls() == 2; });
  std::future<grpc::Status> set = std::async(std::launch::async, [&] {
    grpc::ClientContext context;
    store::v1::SetRequest request;
    store::v1::SetResponse response;
    request.set_run_id("job");
    request.set_key("k");
    return stub->Set(&context, request, &response);
  });
  until([&] { return journal.busy(); });
  EXPECT_EQ(daemon_loop.waiting_calls(), 0u);

  wait_context.TryCancel();
  get_context.TryCancel();
  const auto ended = [](std::future<grpc::Status>& call) {
    return call.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  };
  until([&] { return ended(wait) && ended(get); });
  EXPECT_EQ(wait.get().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(get.get().error_code(), grpc::StatusCode::CANCELLED);
  // Runs what the server's side of the cancellation has posted.
  loop.restart();
  loop.run_for(std::chrono::milliseconds(100));
  journal.End(absl::OkStatus());
  until([&] { return ended(set); });
  EXPECT_TRUE(set.get().ok());
  router.Close();
  front.Close();
  server->Shutdown();
}

}  // namespace
}  // namespace muster::rendezvous
