#include "test/rendezvous/cluster/store_waiter.h"

#include <utility>
#include <variant>

namespace muster::rendezvous {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kMostCalls = 4;
constexpr int kMany = 150;
// All of a job's clients wait for the key of the moment, and set it.
constexpr Duration kMoment = seconds(5);
constexpr Duration kLongestWait = seconds(10);
constexpr Duration kWaiterPatience = seconds(5);
// A cancellation is likely to meet the call while its answer is held for the disk.
constexpr std::int64_t kSoon = 12'000;  // microseconds

}  // namespace

StoreWaiter::StoreWaiter(World world, int host, std::string run_id)
    : world_(world),
      host_(host),
      run_id_(std::move(run_id)),
      process_(std::make_shared<Process>(world.scheduler, world.random)) {}

StoreWaiter::~StoreWaiter() {
  process_->Kill();
  Drop();
}

void StoreWaiter::ExpectAnswers() {
  Drop();
  expects_answers_ = true;
}

void StoreWaiter::Think() {
  process_->After(world_.random.Between(milliseconds(100), seconds(20)), [this] {
    Call();
    Think();
  });
}

void StoreWaiter::Connect() {
  connection_ = world_.network.Connect(host_, this, place_);
  process_->After(kWaiterPatience, [this, connection = connection_] {
    if (connection != connection_ || connected_) return;
    Drop();
    GoToNextPlace();
  });
}

void StoreWaiter::Call() {
  if (connection_ == 0) return Connect();
  if (!connected_ || calls_.size() >= kMostCalls) return;
  if (world_.network.places() > 1 && world_.random.Chance(1, 60)) return SetMany();
  // Sometimes all that is under way goes with the connection.
  if (world_.random.Chance(1, 20)) return Drop();
  const StoreRequest request = Choose();
  calls_[request.number] = request;
  world_.network.Say(connection_, request);
  if (world_.random.Chance(1, 3)) {
    CancelLater(request.number, microseconds(world_.random.Below(kSoon)));
  } else if (request.operation == StoreOperation::kWait && !request.wait_for) {
    CancelLater(request.number, world_.random.Between(milliseconds(1), kLongestWait));
  } else {
    GiveUpAfter(request.number, request.wait_for.value_or(Duration::zero()) + kWaiterPatience);
  }
}

void StoreWaiter::SetMany() {
  const auto moment = world_.scheduler.now().time_since_epoch() / kMoment;
  for (int i = 0; i < kMany; ++i) {
    const StoreRequest request{.number = ++last_call_,
                               .operation = StoreOperation::kSet,
                               .run_id = run_id_,
                               .key = absl::StrCat("b", i),
                               .value = absl::StrCat(moment)};
    calls_[request.number] = request;
    world_.network.Say(connection_, request);
  }
  GiveUpAfter(last_call_, kWaiterPatience);
}

StoreRequest StoreWaiter::Choose() {
  const auto moment = world_.scheduler.now().time_since_epoch() / kMoment;
  StoreRequest request{.number = ++last_call_, .run_id = run_id_};
  request.key = absl::StrCat("w", moment + world_.random.Below(2));
  if (world_.random.Chance(1, 3)) {
    request.operation = StoreOperation::kSet;
    request.value.push_back('1');
    return request;
  }
  request.operation = StoreOperation::kWait;
  if (world_.random.Chance(3, 4)) {
    request.wait_for = world_.random.Between(milliseconds(0), kLongestWait);
  }
  return request;
}

void StoreWaiter::CancelLater(std::uint64_t number, Duration after) {
  process_->After(after, [this, number] {
    if (calls_.erase(number) == 0) return;
    world_.network.Say(connection_, StoreCancel{number});
  });
}

void StoreWaiter::GiveUpAfter(std::uint64_t number, Duration patience) {
  process_->After(patience, [this, number] {
    if (!calls_.contains(number)) return;
    if (expects_answers_) {
      world_.checks.violations.Add(
          Check::kAnswered, absl::StrCat("job ", run_id_, ": a call of the store of host ", host_,
                                         " is not answered, and nothing goes wrong"));
    }
    Drop();
  });
}

void StoreWaiter::OnConnected(ConnectionId connection) {
  process_->Do([this, connection] {
    if (connection != connection_) return;
    connected_ = true;
    refused_ = 0;
  });
}

void StoreWaiter::OnRefused(ConnectionId connection) {
  process_->Do([this, connection] {
    if (connection != connection_) return;
    Drop();
    GoToNextPlace();
    // Those that stand by refuse connections.
    if (++refused_ % world_.network.places() != 0) Connect();
  });
}

void StoreWaiter::OnMessage(ConnectionId connection, Downward message) {
  process_->Do([this, connection, answer = std::get<StoreReply>(std::move(message))] {
    if (connection != connection_) return;
    const auto call = calls_.extract(answer.number);
    if (call.empty()) return;  // cancelled
    if (call.mapped().operation != StoreOperation::kWait) return;
    world_.incidents.Count(answer.done ? Incident::kWaitOver : Incident::kWaitTimedOut);
    if (answer.done && answer.value.empty()) {
      world_.checks.violations.Add(Check::kStore,
                                   absl::StrCat("job ", run_id_, ", key ", call.mapped().key,
                                                ": it was waited for, and is not there"));
    }
  });
}

void StoreWaiter::OnClosed(ConnectionId connection) {
  process_->Do([this, connection] {
    if (connection == connection_) Drop();
  });
}

void StoreWaiter::Drop() {
  if (connection_ != 0) world_.network.Abandon(connection_);
  connection_ = 0;
  connected_ = false;
  calls_.clear();
}

}  // namespace muster::rendezvous
