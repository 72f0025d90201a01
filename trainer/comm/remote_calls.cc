#include "trainer/comm/remote_calls.h"

#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include <torch/types.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

// They hide the agent from builds without it, which Debian's is not, but its headers do not say so.
#define USE_RPC
#define USE_TENSORPIPE
#include <torch/csrc/distributed/rpc/request_callback.h>
#include <torch/csrc/distributed/rpc/tensorpipe_agent.h>
#undef USE_RPC
#undef USE_TENSORPIPE

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "base/random_name.h"
#include "trainer/worker/one_line.h"

namespace muster::trainer {
namespace {

namespace rpc = torch::distributed::rpc;

constexpr int kAgentThreads = 4;
constexpr int kSecretCharacters = 32;
constexpr float kForever = 0;  // a timeout, by rpc_agent.h
constexpr char kSecretKey[] = "secret";
// Of the environment, by which TensorPipe finds the address to listen at.
constexpr char kInterfaceVariable[] = "TP_SOCKET_IFNAME";

// Rank 0 makes it and puts it into the store, which only ranks of the job reach.
std::string SharedSecret(const RemoteCalls::Place& place) {
  if (place.rank == 0) {
    const std::string secret = base::RandomName(kSecretCharacters);
    place.store->set(kSecretKey, std::vector<std::uint8_t>(secret.begin(), secret.end()));
    return secret;
  }
  const std::vector<std::uint8_t> secret = place.store->get(kSecretKey);
  return std::string(secret.begin(), secret.end());
}

void CountAsSent(GroupMeter& meter, const RemoteCalls::Tensors& tensors) {
  for (const at::Tensor& tensor : tensors) {
    const auto bytes = static_cast<std::int64_t>(tensor.nbytes());
    meter.traffic.Add(Use::kActivations, Operation::kSend, bytes, bytes);
  }
}

// Takes calls from the agent.
class CallTaker : public rpc::RequestCallback {
 public:
  CallTaker(std::string secret, std::shared_ptr<GroupMeter> meter, RemoteCalls::Handler handler)
      : secret_(std::move(secret)), meter_(std::move(meter)), handler_(std::move(handler)) {}

 protected:
  c10::intrusive_ptr<rpc::JitFuture> processMessage(rpc::Message& request,
                                                    std::vector<c10::Stream>) const override {
    auto future = c10::make_intrusive<rpc::JitFuture>(at::AnyClassType::get());
    const std::string text(request.payload().begin(), request.payload().end());
    if (!absl::StartsWith(text, secret_)) {
      future->setError(std::make_exception_ptr(std::runtime_error("the call is not of this job")));
      return future;
    }
    if (text.size() == secret_.size()) return future;  // of Watch(): never answered
    const auto answer = [future, meter = meter_](absl::StatusOr<RemoteCalls::Tensors> answer) {
      if (!answer.ok()) {
        future->setError(
            std::make_exception_ptr(std::runtime_error(std::string(answer.status().message()))));
        return;
      }
      CountAsSent(*meter, *answer);
      auto message = c10::make_intrusive<rpc::Message>(std::vector<char>(), *std::move(answer),
                                                       rpc::MessageType::SCRIPT_RET);
      auto storages = message->getStorages();
      future->markCompleted(c10::IValue(std::move(message)), std::move(storages));
    };
    handler_(text.substr(secret_.size()), std::move(request.tensors()), answer);
    return future;
  }

 private:
  const std::string secret_;
  const std::shared_ptr<GroupMeter> meter_;
  const RemoteCalls::Handler handler_;
};

std::string NameOf(int rank) {
  return absl::StrCat("member", rank);
}

}  // namespace

struct RemoteCalls::Agent {
  std::string secret;
  std::shared_ptr<rpc::TensorPipeAgent> agent;

  // Throws c10::Error where it cannot be sent.
  c10::intrusive_ptr<rpc::JitFuture> Send(int to, const std::string& what,
                                          Tensors arguments) const {
    const std::string text = absl::StrCat(secret, what);
    return agent->send(
        agent->getWorkerInfo(static_cast<rpc::worker_id_t>(to)),
        c10::make_intrusive<rpc::Message>(std::vector<char>(text.begin(), text.end()),
                                          std::move(arguments), rpc::MessageType::SCRIPT_CALL),
        kForever);
  }
};

RemoteCalls::RemoteCalls(const Place& place, std::shared_ptr<GroupMeter> meter, Handler handler)
    : meter_(std::move(meter)), agent_(std::make_unique<Agent>()) {
  // TensorPipe has no other way to be told, and reads it once, in what comes next.
  if (!place.interface.empty()) setenv(kInterfaceVariable, place.interface.c_str(), 0);
  agent_->secret = SharedSecret(place);
  agent_->agent = std::make_shared<rpc::TensorPipeAgent>(
      c10::make_intrusive<c10d::PrefixStore>("agents", place.store), NameOf(place.rank),
      static_cast<rpc::worker_id_t>(place.rank), place.size,
      rpc::TensorPipeRpcBackendOptions(kAgentThreads, std::vector<std::string>{"uv"},
                                       std::vector<std::string>{"basic"}, kForever,
                                       /*init_method=*/""),
      std::unordered_map<std::string, rpc::DeviceMap>(), std::vector<c10::Device>(),
      std::make_unique<CallTaker>(agent_->secret, meter_, std::move(handler)));
  agent_->agent->start();
}

RemoteCalls::~RemoteCalls() {
  agent_->agent->shutdown();
}

void RemoteCalls::Call(int to, const std::string& what, Tensors arguments, Answer done) {
  std::size_t bytes = 0;
  for (const at::Tensor& tensor : arguments) bytes += tensor.nbytes();
  const FlightTicket ticket = meter_->flights.EnterPair(
      Operation::kSend,
      absl::StrCat("to rank ", meter_->members[static_cast<std::size_t>(to)], ", ", what), bytes);
  CountAsSent(*meter_, arguments);
  try {
    const auto answer = agent_->Send(to, what, std::move(arguments));
    answer->addCallback([meter = meter_, ticket, done](rpc::JitFuture& answer) {
      if (answer.hasError()) {
        done(absl::UnavailableError(OneLine(std::runtime_error(answer.tryRetrieveErrorMessage()))));
        return;
      }
      meter->flights.Leave(ticket);
      done(answer.constValue().toCustomClass<rpc::Message>()->tensors());
    });
  } catch (const std::exception& error) {
    done(absl::UnavailableError(OneLine(error)));
  }
}

void RemoteCalls::Watch(int to, std::function<void()> gone) {
  try {
    agent_->Send(to, /*what=*/"", {})->addCallback([gone](rpc::JitFuture&) { gone(); });
  } catch (const std::exception&) {
    gone();
  }
}

}  // namespace muster::trainer
