#include "trainer/comm/remote_calls.h"

#include <net/if.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <map>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include <torch/types.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

// These macros hide the agent in builds without it; Debian's has it, but its headers do not define
// them.
#ifndef USE_RPC
#define USE_RPC
#endif
#ifndef USE_TENSORPIPE
#define USE_TENSORPIPE
#endif
#include <torch/csrc/distributed/rpc/request_callback.h>
#include <torch/csrc/distributed/rpc/tensorpipe_agent.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "base/text.h"
#include "trainer/comm/host/transport.h"
#include "trainer/runtime/failure.h"

namespace muster::trainer {
namespace {

namespace rpc = torch::distributed::rpc;

constexpr int kAgentThreads = 4;
constexpr int kSecretCharacters = 32;
constexpr float kForever = 0;  // a timeout, per LibTorch's rpc_agent.h
constexpr char kSecretKey[] = "secret";
// Two calls: one to a member whose process is watched, which is never answered; and one to test a
// new connection.
constexpr char kWatch[] = "";
constexpr char kHello[] = "hello";
// The environment variable with which TensorPipe chooses its listening address.
constexpr char kInterfaceVariable[] = "TP_SOCKET_IFNAME";

// With an invalid name TensorPipe would listen wherever the host's name resolves to.
void CheckInterface() {
  const char* const name = std::getenv(kInterfaceVariable);
  if (name == nullptr || *name == '\0' || if_nametoindex(name) != 0) return;
  throw std::invalid_argument(absl::StrCat(kInterfaceVariable, "=", name,
                                           ": this host has no network interface of that name"));
}

// Rank 0 creates it and puts it into the store, so it is as secret as the store.
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

// Receives calls from the agent.
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
      future->setError(
          std::make_exception_ptr(std::runtime_error("the call is not from this job")));
      return future;
    }
    const std::string what = text.substr(secret_.size());
    if (what == kWatch) return future;
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
    if (what == kHello) {
      answer(RemoteCalls::Tensors());
    } else {
      handler_(what, std::move(request.tensors()), answer);
    }
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

  // Throws c10::Error if it cannot be sent.
  c10::intrusive_ptr<rpc::JitFuture> Send(int to, const std::string& what, Tensors arguments,
                                          float timeout_seconds = kForever) const {
    const std::string text = absl::StrCat(secret, what);
    return agent->send(
        agent->getWorkerInfo(static_cast<rpc::worker_id_t>(to)),
        c10::make_intrusive<rpc::Message>(std::vector<char>(text.begin(), text.end()),
                                          std::move(arguments), rpc::MessageType::SCRIPT_CALL),
        timeout_seconds);
  }
};

RemoteCalls::RemoteCalls(const Place& place, std::shared_ptr<GroupMeter> meter, Handler handler)
    : meter_(std::move(meter)), agent_(std::make_unique<Agent>()) {
  // TensorPipe reads this variable, its only setting, once, in what follows.
  if (!place.interface.empty()) setenv(kInterfaceVariable, place.interface.c_str(), 0);
  CheckInterface();
  agent_->secret = SharedSecret(place);
  const std::vector<int> others = ListeningSockets();
  agent_->agent = std::make_shared<rpc::TensorPipeAgent>(
      c10::make_intrusive<c10d::PrefixStore>("agents", place.store), NameOf(place.rank),
      static_cast<rpc::worker_id_t>(place.rank), place.size,
      rpc::TensorPipeRpcBackendOptions(kAgentThreads, std::vector<std::string>{"uv"},
                                       std::vector<std::string>{"basic"}, kForever,
                                       /*init_method=*/""),
      std::unordered_map<std::string, rpc::DeviceMap>(), std::vector<c10::Device>(),
      std::make_unique<CallTaker>(agent_->secret, meter_, std::move(handler)));
  agent_->agent->start();
  Meet(place);
  for (const int socket : ListeningSockets()) {
    if (!std::binary_search(others.begin(), others.end(), socket)) StopListening(socket);
  }
}

void RemoteCalls::Meet(const Place& place) {
  const float seconds = std::chrono::duration<float>(place.timeout).count();
  std::map<int, c10::intrusive_ptr<rpc::JitFuture>> answers;
  for (int to = 0; to < place.size; ++to) {
    if (to != place.rank) answers[to] = agent_->Send(to, kHello, {}, seconds);
  }
  for (const auto& [to, answer] : answers) {
    answer->wait();
    if (!answer->hasError()) continue;
    throw std::runtime_error(absl::StrCat("connect to rank ",
                                          meter_->members[static_cast<std::size_t>(to)],
                                          " for calls: ", answer->tryRetrieveErrorMessage()));
  }
  // Others may not be connected to this one yet.
  const auto key = [](int rank) { return absl::StrCat("connected/", rank); };
  std::vector<std::string> all;
  for (int rank = 0; rank < place.size; ++rank) all.push_back(key(rank));
  place.store->set(key(place.rank), std::vector<std::uint8_t>{1});
  place.store->wait(all, place.timeout);
}

RemoteCalls::~RemoteCalls() {
  agent_->agent->shutdown();
}

void RemoteCalls::Call(int to, const std::string& what, Tensors arguments, Answer done) {
  std::size_t bytes = 0;
  for (const at::Tensor& tensor : arguments) bytes += tensor.nbytes();
  const FlightTicket ticket = meter_->EnterMessage(Operation::kSend, to, what, bytes);
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

FlightTicket RemoteCalls::AwaitCall(int from, const std::string& what) {
  return meter_->EnterMessage(Operation::kReceive, from, what, /*bytes=*/0);
}

void RemoteCalls::Came(const FlightTicket& ticket) {
  meter_->flights.Leave(ticket);
}

void RemoteCalls::Watch(int to, std::function<void()> gone) {
  try {
    agent_->Send(to, kWatch, {})->addCallback([gone](rpc::JitFuture&) { gone(); });
  } catch (const std::exception&) {
    gone();
  }
}

}  // namespace muster::trainer
