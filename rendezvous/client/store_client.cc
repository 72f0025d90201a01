#include "rendezvous/client/store_client.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include "base/text.h"
#include "proto/store.grpc.pb.h"
#include "rendezvous/core/values/phrases.h"

namespace muster::rendezvous {
namespace {

using Clock = std::chrono::steady_clock;

// A daemon that its keeper starts again, or that takes over from another, is back before this.
constexpr std::chrono::seconds kLongestOutage(4);
// One of several that stand by leads before this, whatever has become of the machine of the last.
constexpr std::chrono::seconds kLongestTakeOver(10);
// A call that was open for so long had a daemon that kept it.
constexpr std::chrono::milliseconds kKept(500);
// A daemon that is ending refuses calls over connections that still stand.
constexpr std::chrono::milliseconds kPause(100);
// To a place that has just accepted one.
constexpr std::chrono::seconds kReconnect(1);
// gRPC waits for a second of its own accord.
constexpr std::chrono::milliseconds kFirstReconnect(100);

// Get waits only if it is told for how long. The deadline of the call comes before.
constexpr std::uint64_t kNoLimitMs = std::uint64_t{1} << 40;

std::chrono::milliseconds Left(std::chrono::milliseconds timeout, Clock::time_point begin) {
  const auto past = std::chrono::floor<std::chrono::milliseconds>(Clock::now() - begin);
  return std::max(timeout - past, std::chrono::milliseconds(0));
}

std::chrono::system_clock::time_point In(std::chrono::milliseconds time) {
  return std::chrono::system_clock::now() + time;
}

// A call that waits goes through any number of outages of its daemon. Each has a time of its own.
class Outage {
 public:
  // The call that began at `begin` has ended as there was no daemon. Whether there is one again,
  // which is waited for, though no longer than `patience`.
  bool IsOver(grpc::Channel& channel, Clock::time_point begin, std::chrono::milliseconds patience) {
    patience = std::min<std::chrono::milliseconds>(patience, kLongestOutage);
    const Clock::time_point now = Clock::now();
    if (!end_ || now - begin >= kKept) end_ = now + kLongestOutage;
    // Ends at once if the connection does not stand, or as soon as it breaks.
    channel.WaitForStateChange(GRPC_CHANNEL_READY, In(std::min(kPause, patience)));
    const auto left = std::chrono::floor<std::chrono::milliseconds>(*end_ - Clock::now());
    return left.count() > 0 && channel.WaitForConnected(In(std::min(left, patience)));
  }

 private:
  std::optional<Clock::time_point> end_;
};

template <typename Request, typename Response>
using StoreMethod = grpc::Status (store::v1::Store::Stub::*)(grpc::ClientContext*, const Request&,
                                                             Response*);

}  // namespace

class StoreClient::Connection {
 public:
  Connection(DaemonOptions daemon, std::string run_id)
      : daemon_(std::move(daemon)),
        run_id_(std::move(run_id)),
        places_(EachOf(daemon_.endpoint).size()) {
    Connect();
  }

  template <typename Request>
  Request Of() const {
    Request request;
    request.set_run_id(run_id_);
    return request;
  }

  template <typename Request>
  Request Of(const std::string& key) const {
    auto request = Of<Request>();
    request.set_key(key);
    return request;
  }

  template <typename Request>
  Request Of(const std::vector<std::string>& keys) const {
    auto request = Of<Request>();
    for (const std::string& key : keys) request.add_keys(key);
    return request;
  }

  // Makes a call that is answered at once.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Ask(StoreMethod<Request, Response> method, const Request& request) {
    Response response;
    const grpc::Status status = Call(method, request, daemon_.patience, response);
    if (!status.ok()) return ExplainFailure(status, daemon_);
    return response;
  }

  // Makes a call that only reads: of several places another is asked when the daemon dies in the
  // middle of it.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Read(StoreMethod<Request, Response> method, const Request& request) {
    Response response;
    grpc::Status status = Call(method, request, daemon_.patience, response);
    Outage outage;
    const Clock::time_point end = Clock::now() + daemon_.patience;
    while (status.error_code() == grpc::StatusCode::UNAVAILABLE && places_ > 1 &&
           Clock::now() < end && IsBack(outage, Clock::now(), daemon_.patience)) {
      status = Call(method, request, daemon_.patience, response);
    }
    if (!status.ok()) return ExplainFailure(status, daemon_);
    return response;
  }

  // Makes a call that waits, again and again while its daemon comes back: it leaves nothing behind
  // when it ends.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Await(StoreMethod<Request, Response> method, Request request,
                                 Timeout timeout) {
    const Clock::time_point begin = Clock::now();
    for (Outage outage;;) {
      const Clock::time_point turn = Clock::now();
      Timeout limit = timeout;
      if (timeout) {
        limit = Left(*timeout, begin);
        // How many are at a barrier when the time is over only the daemon can say.
        if constexpr (std::is_same_v<Request, store::v1::BarrierRequest>) {
          request.set_timeout_ms(static_cast<std::uint64_t>(limit->count()));
          *limit += daemon_.patience;
        }
      }
      Response response;
      const grpc::Status status = Call(method, request, limit, response);
      if (status.ok()) return response;
      if (timeout && status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
        const bool silent =
            std::is_same_v<Request, store::v1::BarrierRequest> && Clock::now() - turn >= *limit;
        if (silent) return ExplainFailure(status, daemon_);
        return absl::DeadlineExceededError(OneLine(status.error_message(), kMaxDaemonSentence));
      }
      if (status.error_code() != grpc::StatusCode::UNAVAILABLE ||
          !IsBack(outage, turn, timeout ? Left(*timeout, begin) : kLongestTakeOver)) {
        return ExplainFailure(status, daemon_);
      }
    }
  }

 private:
  template <typename Request, typename Response>
  grpc::Status Call(StoreMethod<Request, Response> method, const Request& request, Timeout timeout,
                    Response& response) {
    grpc::ClientContext context;
    if (timeout) context.set_deadline(In(*timeout));
    return (stub_.get()->*method)(&context, request, &response);
  }

  // Of several places, that where the daemon leads now.
  void Connect() {
    channel_ = OpenChannel(ChannelTarget(FindLeader(daemon_.endpoint, daemon_.patience)),
                           daemon_.credentials, {.first_reconnect = kFirstReconnect});
    stub_ = store::v1::Store::NewStub(channel_);
  }

  // Whether there is a daemon again, here or at another place; waits for it.
  bool IsBack(Outage& outage, Clock::time_point begin, std::chrono::milliseconds patience) {
    if (places_ == 1) return outage.IsOver(*channel_, begin, patience);
    const Clock::time_point end =
        Clock::now() + std::min(patience, std::chrono::milliseconds(kLongestTakeOver));
    while (Clock::now() < end) {
      Connect();
      if (channel_->WaitForConnected(In(kReconnect))) return true;
    }
    return false;
  }

  const DaemonOptions daemon_;
  const std::string run_id_;
  const std::size_t places_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<store::v1::Store::Stub> stub_;
};

StoreClient::StoreClient(DaemonOptions daemon, std::string run_id)
    : connection_(std::make_unique<Connection>(std::move(daemon), std::move(run_id))) {}

StoreClient::~StoreClient() = default;

// By MultiGet, whose NOT_FOUND can only mean the job.
absl::StatusOr<std::optional<std::string>> StoreClient::Get(const std::string& key) {
  auto response =
      connection_->Read(&store::v1::Store::Stub::MultiGet,
                        connection_->Of<store::v1::MultiGetRequest>(std::vector<std::string>{key}));
  if (!response.ok()) return response.status();
  if (response->values_size() != 1 || !response->values(0).has_value()) return std::nullopt;
  return std::move(*response->mutable_values(0)->mutable_value());
}

absl::StatusOr<std::string> StoreClient::GetWhenThere(const std::string& key, Timeout timeout) {
  // Whether anybody is there, and has the job, is known at once this way.
  absl::StatusOr<std::optional<std::string>> now = Get(key);
  if (!now.ok()) return now.status();
  if (now->has_value()) return **std::move(now);
  auto request = connection_->Of<store::v1::GetRequest>(key);
  request.set_timeout_ms(kNoLimitMs);
  auto response = connection_->Await(&store::v1::Store::Stub::Get, std::move(request), timeout);
  if (!response.ok()) return response.status();
  return std::move(*response->mutable_value());
}

absl::Status StoreClient::Set(const std::string& key, const std::string& value) {
  auto request = connection_->Of<store::v1::SetRequest>(key);
  request.set_value(value);
  return connection_->Ask(&store::v1::Store::Stub::Set, request).status();
}

absl::StatusOr<std::int64_t> StoreClient::Add(const std::string& key, std::int64_t delta) {
  auto request = connection_->Of<store::v1::AddRequest>(key);
  request.set_delta(delta);
  const auto response = connection_->Ask(&store::v1::Store::Stub::Add, request);
  if (!response.ok()) return response.status();
  return response->value();
}

absl::Status StoreClient::Append(const std::string& key, const std::string& suffix) {
  auto request = connection_->Of<store::v1::AppendRequest>(key);
  request.set_suffix(suffix);
  return connection_->Ask(&store::v1::Store::Stub::Append, request).status();
}

absl::StatusOr<StoreClient::CompareSetOutcome> StoreClient::CompareSet(const std::string& key,
                                                                       const std::string& expected,
                                                                       const std::string& desired) {
  auto request = connection_->Of<store::v1::CompareSetRequest>(key);
  request.set_expected(expected);
  request.set_desired(desired);
  auto response = connection_->Ask(&store::v1::Store::Stub::CompareSet, request);
  if (!response.ok()) return response.status();
  // Where the key does not exist, the answer is `expected` (store.proto).
  if (!response->stored() && response->value() == expected) return CompareSetOutcome{};
  return CompareSetOutcome{response->stored(), std::move(*response->mutable_value())};
}

absl::StatusOr<bool> StoreClient::Delete(const std::string& key) {
  const auto response = connection_->Ask(&store::v1::Store::Stub::Delete,
                                         connection_->Of<store::v1::DeleteRequest>(key));
  if (!response.ok()) return response.status();
  return response->deleted();
}

absl::StatusOr<bool> StoreClient::Check(const std::vector<std::string>& keys) {
  const auto response = connection_->Read(&store::v1::Store::Stub::Check,
                                          connection_->Of<store::v1::CheckRequest>(keys));
  if (!response.ok()) return response.status();
  return response->all_exist();
}

absl::Status StoreClient::Wait(const std::vector<std::string>& keys, Timeout timeout) {
  // As in GetWhenThere.
  const absl::StatusOr<bool> now = Check(keys);
  if (!now.ok() || *now) return now.status();
  return connection_
      ->Await(&store::v1::Store::Stub::Wait, connection_->Of<store::v1::WaitRequest>(keys), timeout)
      .status();
}

absl::Status StoreClient::Barrier(const std::string& name, std::uint64_t count, Timeout timeout) {
  // As in GetWhenThere.
  if (const absl::StatusOr<bool> now = Check({}); !now.ok()) return now.status();
  auto request = connection_->Of<store::v1::BarrierRequest>();
  request.set_name(name);
  request.set_count(count);
  request.set_caller(base::RandomName(20));
  return connection_->Await(&store::v1::Store::Stub::Barrier, std::move(request), timeout).status();
}

absl::StatusOr<std::uint64_t> StoreClient::NumKeys() {
  const auto response = connection_->Read(&store::v1::Store::Stub::NumKeys,
                                          connection_->Of<store::v1::NumKeysRequest>());
  if (!response.ok()) return response.status();
  return response->num_keys();
}

}  // namespace muster::rendezvous
