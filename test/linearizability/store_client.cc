#include "test/linearizability/store_client.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <grpcpp/grpcpp.h>

#include "absl/strings/match.h"
#include "proto/store.grpc.pb.h"
#include "rendezvous/net/grpc_server.h"

namespace muster::linearizability {
namespace {

namespace v1 = store::v1;

// CLOCK_MONOTONIC, which all threads and processes of the machine share.
std::int64_t NowNs() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

// What became of a call that was not answered with OK. Nothing: it is not known.
std::optional<StoreAnswer> AnswerOf(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::NOT_FOUND:
      // The one of a Get; that there is no such job is another.
      if (!absl::StrContains(status.error_message(), "no such key")) return std::nullopt;
      return StoreAnswer{.values = {std::nullopt}};
    case grpc::StatusCode::FAILED_PRECONDITION:
      return StoreAnswer{.kind = StoreAnswer::Kind::kNotANumber};
    case grpc::StatusCode::OUT_OF_RANGE:
      return StoreAnswer{.kind = StoreAnswer::Kind::kTooLarge};
    default:
      return std::nullopt;
  }
}

// Whether the call may have been done although its client was told that it failed: the codes with
// which gRPC itself says that it does not know.
bool MayHaveBeenDone(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::UNKNOWN:
    case grpc::StatusCode::INTERNAL:
      return true;
    default:
      return false;
  }
}

std::shared_ptr<grpc::Channel> Channel(const std::string& daemon,
                                       const rendezvous::Credentials& credentials) {
  rendezvous::InitGrpcRuntime();
  // An outage must end for the client soon after it has ended.
  constexpr int kReconnectMs = 20;
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2 * kReconnectMs);
  const rendezvous::Credentials::Client client = credentials.ForClient();
  arguments.SetSslTargetNameOverride(client.server_name);
  return grpc::CreateCustomChannel("ipv4:" + daemon, client.credentials, arguments);
}

}  // namespace

class StoreClient::Connection {
 public:
  Connection(const std::string& daemon, const StorePlace& place)
      : channel_(Channel(daemon, place.credentials)),
        stub_(v1::Store::NewStub(channel_)),
        run_id_(place.run_id),
        prefix_(place.prefix) {}

  // False when it is refused, or at the deadline.
  bool Connect(std::chrono::system_clock::time_point deadline) {
    while (true) {
      const grpc_connectivity_state state = channel_->GetState(/*try_to_connect=*/true);
      if (state == GRPC_CHANNEL_READY) return true;
      if (state == GRPC_CHANNEL_TRANSIENT_FAILURE) return false;
      if (!channel_->WaitForStateChange(state, deadline)) return false;
    }
  }

  grpc::Status Do(grpc::ClientContext& context, const StoreCall& call, StoreAnswer& answer) {
    switch (call.command) {
      case StoreCommand::kGet:
        return Get(context, call, answer);
      case StoreCommand::kSet:
        return Set(context, call);
      case StoreCommand::kAdd:
        return Add(context, call, answer);
      case StoreCommand::kCompareSet:
        return CompareSet(context, call, answer);
      case StoreCommand::kAppend:
        return Append(context, call);
      case StoreCommand::kDelete:
        return Delete(context, call, answer);
      case StoreCommand::kCheck:
        return Check(context, call, answer);
      case StoreCommand::kMultiGet:
        return MultiGet(context, call, answer);
      case StoreCommand::kMultiSet:
        return MultiSet(context, call);
    }
    std::abort();
  }

 private:
  template <typename Request>
  Request OfOneKey(const StoreCall& call) const {
    Request request;
    request.set_run_id(run_id_);
    request.set_key(prefix_ + call.keys[0]);
    return request;
  }

  template <typename Request>
  Request OfKeys(const StoreCall& call) const {
    Request request;
    request.set_run_id(run_id_);
    for (const std::string& key : call.keys) request.add_keys(prefix_ + key);
    return request;
  }

  grpc::Status Get(grpc::ClientContext& context, const StoreCall& call, StoreAnswer& answer) {
    v1::GetResponse response;
    const grpc::Status status = stub_->Get(&context, OfOneKey<v1::GetRequest>(call), &response);
    answer.values = {response.value()};
    return status;
  }

  grpc::Status Set(grpc::ClientContext& context, const StoreCall& call) {
    auto request = OfOneKey<v1::SetRequest>(call);
    request.set_value(call.values[0]);
    v1::SetResponse response;
    return stub_->Set(&context, request, &response);
  }

  grpc::Status Add(grpc::ClientContext& context, const StoreCall& call, StoreAnswer& answer) {
    auto request = OfOneKey<v1::AddRequest>(call);
    request.set_delta(call.delta);
    v1::AddResponse response;
    const grpc::Status status = stub_->Add(&context, request, &response);
    answer.sum = response.value();
    return status;
  }

  grpc::Status CompareSet(grpc::ClientContext& context, const StoreCall& call,
                          StoreAnswer& answer) {
    auto request = OfOneKey<v1::CompareSetRequest>(call);
    request.set_expected(call.values[0]);
    request.set_desired(call.values[1]);
    v1::CompareSetResponse response;
    const grpc::Status status = stub_->CompareSet(&context, request, &response);
    answer.yes = response.stored();
    answer.values = {response.value()};
    return status;
  }

  grpc::Status Append(grpc::ClientContext& context, const StoreCall& call) {
    auto request = OfOneKey<v1::AppendRequest>(call);
    request.set_suffix(call.values[0]);
    v1::AppendResponse response;
    return stub_->Append(&context, request, &response);
  }

  grpc::Status Delete(grpc::ClientContext& context, const StoreCall& call, StoreAnswer& answer) {
    v1::DeleteResponse response;
    const grpc::Status status =
        stub_->Delete(&context, OfOneKey<v1::DeleteRequest>(call), &response);
    answer.yes = response.deleted();
    return status;
  }

  grpc::Status Check(grpc::ClientContext& context, const StoreCall& call, StoreAnswer& answer) {
    v1::CheckResponse response;
    const grpc::Status status = stub_->Check(&context, OfKeys<v1::CheckRequest>(call), &response);
    answer.yes = response.all_exist();
    return status;
  }

  grpc::Status MultiGet(grpc::ClientContext& context, const StoreCall& call, StoreAnswer& answer) {
    v1::MultiGetResponse response;
    const grpc::Status status =
        stub_->MultiGet(&context, OfKeys<v1::MultiGetRequest>(call), &response);
    for (const v1::MaybeValue& value : response.values()) {
      answer.values.push_back(value.has_value() ? std::optional(value.value()) : std::nullopt);
    }
    return status;
  }

  grpc::Status MultiSet(grpc::ClientContext& context, const StoreCall& call) {
    v1::MultiSetRequest request;
    request.set_run_id(run_id_);
    for (std::size_t i = 0; i < call.keys.size(); ++i) {
      v1::KeyValue* entry = request.add_entries();
      entry->set_key(prefix_ + call.keys[i]);
      entry->set_value(call.values[i]);
    }
    v1::MultiSetResponse response;
    return stub_->MultiSet(&context, request, &response);
  }

  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::Store::Stub> stub_;
  const std::string run_id_;
  const std::string prefix_;
};

StoreClient::StoreClient(int number, StorePlace place)
    : number_(number),
      place_(std::move(place)),
      connection_(std::make_unique<Connection>(place_.daemons[0], place_)) {}

StoreClient::~StoreClient() = default;

bool StoreClient::Connect(std::chrono::milliseconds patience) {
  // One that stands still takes connections and says nothing on them.
  constexpr std::chrono::milliseconds kForOne(300);
  const auto end = std::chrono::system_clock::now() + patience;
  while (true) {
    const auto now = std::chrono::system_clock::now();
    if (connection_->Connect(std::min(end, now + kForOne))) return true;
    if (now >= end) return false;
    // Nobody may lead at this moment: a round in vain takes a little.
    daemon_ = (daemon_ + 1) % place_.daemons.size();
    if (daemon_ == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    connection_ = std::make_unique<Connection>(place_.daemons[daemon_], place_);
  }
}

absl::StatusOr<StoreOperation> StoreClient::Do(const StoreCall& call,
                                               std::chrono::milliseconds patience) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + patience);
  // While there is no connection the call waits for one, instead of failing at once.
  context.set_wait_for_ready(true);

  StoreOperation operation{.client = number_, .call = call};
  operation.span.call_ns = NowNs();
  const grpc::Status status = connection_->Do(context, call, operation.answer);
  operation.ended_ns = NowNs();
  if (!status.ok()) {
    if (MayHaveBeenDone(status)) {
      operation.answer = {.kind = StoreAnswer::Kind::kUnknown};
      // Perhaps another one serves now.
      if (place_.daemons.size() > 1) {
        daemon_ = (daemon_ + 1) % place_.daemons.size();
        connection_ = std::make_unique<Connection>(place_.daemons[daemon_], place_);
      }
      return operation;
    }
    std::optional<StoreAnswer> answer = AnswerOf(status);
    if (!answer) {
      return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                          status.error_message());
    }
    operation.answer = *std::move(answer);
  }
  operation.span.return_ns = operation.ended_ns;
  return operation;
}

}  // namespace muster::linearizability
