// Writers that each put small values into a durable store over gRPC, one after another, the next as
// soon as the previous one is acknowledged. The store is a musterd with --state-dir, or an etcd.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <grpcpp/create_channel.h>
#include <spdlog/spdlog.h>
#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>

#include "absl/strings/str_cat.h"
#include "proto/store.grpc.pb.h"
#include "rendezvous/client/rendezvous_client.h"
#include "test/bench/daemon/etcd_kv.grpc.pb.h"
#include "test/bench/rendezvous/gathering.h"
#include "test/bench/rendezvous/loop.h"

namespace muster::rendezvous::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kRunId[] = "bench";
constexpr std::size_t kValueBytes = 100;
// Written again and again, as a job's keys are.
constexpr int kKeysPerWriter = 100;

// How to put a value into one kind of store.
class MusterPut {
 public:
  using Stub = store::v1::Store;
  using Request = store::v1::SetRequest;
  using Response = store::v1::SetResponse;

  static void Fill(const std::string& key, const std::string& value, Request& request) {
    request.set_run_id(kRunId);
    request.set_key(key);
    request.set_value(value);
  }
  static void Start(Stub::Stub& stub, grpc::ClientContext* context, const Request* request,
                    Response* response, std::function<void(grpc::Status)> done) {
    stub.async()->Set(context, request, response, std::move(done));
  }
};

class EtcdPut {
 public:
  using Stub = etcdserverpb::KV;
  using Request = etcdserverpb::PutRequest;
  using Response = etcdserverpb::PutResponse;

  static void Fill(const std::string& key, const std::string& value, Request& request) {
    request.set_key(key);
    request.set_value(value);
  }
  static void Start(Stub::Stub& stub, grpc::ClientContext* context, const Request* request,
                    Response* response, std::function<void(grpc::Status)> done) {
    stub.async()->Put(context, request, response, std::move(done));
  }
};

// One writer, with a connection of its own. Runs on gRPC's threads, one call at a time.
template <typename Store>
class Writer {
 public:
  Writer(int number, const std::string& endpoint) : number_(number) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    stub_ = Store::Stub::NewStub(grpc::CreateCustomChannel(
        "dns:///" + endpoint, grpc::InsecureChannelCredentials(), arguments));
  }

  // Puts until `stop`, then calls `stopped`.
  void Begin(const std::atomic<bool>& stop, std::function<void()> stopped) {
    stop_ = &stop;
    stopped_ = std::move(stopped);
    Put();
  }

  // How many were acknowledged; may be asked at any time.
  std::int64_t count() const { return count_.load(std::memory_order_relaxed); }
  // How long each of them took; once stopped.
  const std::vector<std::chrono::nanoseconds>& times() const { return times_; }

 private:
  void Put() {
    context_ = std::make_unique<grpc::ClientContext>();
    Store::Fill(absl::StrCat("writer-", number_, "/", times_.size() % kKeysPerWriter), value_,
                request_);
    began_ = Clock::now();
    Store::Start(*stub_, context_.get(), &request_, &response_,
                 [this](const grpc::Status& status) { OnAnswer(status); });
  }

  void OnAnswer(const grpc::Status& status) {
    if (!status.ok()) {
      std::fprintf(stderr, "load generator: put: %s\n", status.error_message().c_str());
      std::_Exit(1);
    }
    times_.push_back(Clock::now() - began_);
    count_.fetch_add(1, std::memory_order_relaxed);
    if (stop_->load()) return stopped_();
    Put();
  }

  const int number_;
  const std::string value_ = std::string(kValueBytes, 'v');
  std::unique_ptr<typename Store::Stub::Stub> stub_;
  const std::atomic<bool>* stop_ = nullptr;
  std::function<void()> stopped_;

  std::unique_ptr<grpc::ClientContext> context_;
  typename Store::Request request_;
  typename Store::Response response_;
  Clock::time_point began_;
  std::vector<std::chrono::nanoseconds> times_;
  std::atomic<std::int64_t> count_{0};
};

template <typename Store>
void PutFor(boost::asio::io_context& io, const std::string& endpoint, int count, double seconds) {
  std::vector<std::unique_ptr<Writer<Store>>> writers;
  for (int i = 0; i < count; ++i) writers.push_back(std::make_unique<Writer<Store>>(i, endpoint));
  std::atomic<bool> stop = false;
  std::atomic<int> running = count;
  const auto acknowledged = [&] {
    std::int64_t sum = 0;
    for (const auto& writer : writers) sum += writer->count();
    return sum;
  };
  for (const auto& writer : writers) writer->Begin(stop, [&running] { --running; });
  // Connections are made, and caches filled.
  RunFor(io, std::chrono::duration<double>(seconds / 5));

  const std::int64_t before = acknowledged();
  const Clock::time_point start = Clock::now();
  RunFor(io, std::chrono::duration<double>(seconds));
  const std::int64_t commits = acknowledged() - before;
  const double took = std::chrono::duration<double>(Clock::now() - start).count();
  stop = true;
  Await(io, "all writers have stopped", [&running] { return running == 0; });

  std::vector<std::chrono::nanoseconds> times;
  for (const auto& writer : writers) {
    times.insert(times.end(), writer->times().begin(), writer->times().end());
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  std::printf("{\"writers\": %d, \"seconds\": %.3f, \"commits\": %lld, \"p50_us\": %.1f}\n", count,
              took, static_cast<long long>(commits),
              std::chrono::duration<double, std::micro>(*middle).count());
}

// A store is a job's, and a job is there for as long as somebody attends.
void PutIntoMuster(boost::asio::io_context& io, const std::string& endpoint, int writers,
                   double seconds) {
  const auto parsed = ParseEndpoint(endpoint, 0);
  if (!parsed.ok()) std::abort();
  Gathering job(kRunId, 1, [&](RendezvousClient::Listener& listener) {
    return MakeGrpcClient(io, {.endpoint = *parsed}, listener);
  });
  job.Join(1);
  Await(io, "the job runs", [&job] { return job.assigned() == 1; });
  PutFor<MusterPut>(io, endpoint, writers, seconds);
  job.Leave();
  Await(io, "the job has ended", [&job] { return job.left() == 1; });
}

int Main(int argc, char** argv) {
  std::string endpoint, store;
  int writers = 1;
  double seconds = 3;
  CLI::App app{"Puts values into a durable store; prints one JSON object."};
  app.add_option("--store", store)->check(CLI::IsMember({"muster", "etcd"}))->required();
  app.add_option("--endpoint", endpoint)->required();
  app.add_option("--writers", writers)->check(CLI::Range(1, 10'000))->capture_default_str();
  app.add_option("--seconds", seconds)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  spdlog::set_level(spdlog::level::off);

  boost::asio::io_context io(1);
  if (store == "muster") {
    PutIntoMuster(io, endpoint, writers, seconds);
  } else {
    PutFor<EtcdPut>(io, endpoint, writers, seconds);
  }
  return 0;
}

}  // namespace
}  // namespace muster::rendezvous::bench

int main(int argc, char** argv) {
  return muster::rendezvous::bench::Main(argc, argv);
}
