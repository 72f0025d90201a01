#include "test/rendezvous/cluster/store_client.h"

#include <variant>

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kPatience = seconds(5);

}  // namespace

SimStoreClient::SimStoreClient(World world, int host, std::string run_id)
    : world_(world),
      host_(host),
      run_id_(std::move(run_id)),
      name_(absl::StrCat(host, ".", world.random.Below(1'000'000'000))),
      process_(std::make_shared<Process>(world.scheduler, world.random)) {}

SimStoreClient::~SimStoreClient() {
  process_->Kill();
  Drop();
}

void SimStoreClient::Think() {
  process_->After(world_.random.Between(milliseconds(100), seconds(10)), [this] { Call(); });
}

void SimStoreClient::Call() {
  if (connection_ == 0) {
    connection_ = world_.network.Connect(host_, this, place_);
    process_->After(kPatience, [this, connection = connection_] {
      if (connection == connection_ && !connected_) GiveUp();
    });
    return;
  }
  if (!connected_) return;
  if (!call_) Choose();
  StoreRequest request = call_->request;
  request.number = ++last_call_;
  world_.network.Say(connection_, request);
  process_->After(kPatience, [this, number = last_call_] {
    if (number == last_call_ && call_) GiveUp();
  });
}

void SimStoreClient::Choose() {
  StoreRequest request{.run_id = run_id_};
  const std::string own = absl::StrCat(name_, ".", generation_);
  switch (world_.random.Below(8)) {
    case 0:
      request.operation = StoreOperation::kAdd;
      request.key = "c";
      break;
    case 1:
      request.operation = StoreOperation::kSet;
      request.key = absl::StrCat("r", own);
      request.value = absl::StrCat(++last_number_);
      break;
    case 2:
      request.operation = StoreOperation::kAppend;
      request.key = absl::StrCat("a", own);
      request.value = absl::StrCat(++last_number_, ";");
      break;
    case 3:
    case 4:
      request.operation = StoreOperation::kCompareSet;
      request.key = "n";
      request.expected = step_from_;
      request.value = absl::StrCat(std::strtoll(step_from_.c_str(), nullptr, 10) + 1);
      break;
    case 5:
      request.key = world_.random.Chance(1, 2) ? "c" : "n";
      break;
    case 6:
      request.key = absl::StrCat("r", own);
      break;
    default:
      request.key = absl::StrCat("a", own);
  }
  call_ = world_.checks.store.Begin(request);
}

void SimStoreClient::OnMessage(ConnectionId connection, Downward message) {
  process_->Do([this, connection, answer = std::get<StoreReply>(std::move(message))] {
    if (connection != connection_ || answer.number != last_call_ || !call_) return;
    if (answer.unknown) return GiveUp();
    if (answer.done) {
      world_.incidents.Count(Incident::kStoreAcknowledged);
      world_.checks.store.End(*call_, answer);
      if (call_->request.key == "n") step_from_ = answer.value;
    } else {
      world_.incidents.Count(Incident::kStoreRefused);
    }
    call_.reset();
    Think();
  });
}

void SimStoreClient::OnConnected(ConnectionId connection) {
  process_->Do([this, connection] {
    if (connection != connection_) return;
    connected_ = true;
    refused_ = 0;
    Call();
  });
}

void SimStoreClient::OnRefused(ConnectionId connection) {
  process_->Do([this, connection] {
    if (connection != connection_) return;
    if (++refused_ % world_.network.places() == 0) return GiveUp();
    // Those that stand by refuse connections.
    Drop();
    GoToNextPlace();
    Call();
  });
}

void SimStoreClient::OnClosed(ConnectionId connection) {
  process_->Do([this, connection] {
    if (connection != connection_) return;
    // Between two calls the next one connects anew.
    if (call_ || !connected_) return GiveUp();
    Drop();
  });
}

void SimStoreClient::GiveUp() {
  Drop();
  GoToNextPlace();
  ++last_call_;  // no timer and no answer is about the next one
  if (call_) {
    world_.incidents.Count(Incident::kStoreUnanswered);
    // Setting a value again is safe as long as nothing else is written there.
    const bool again = call_->request.operation == StoreOperation::kSet;
    if (!again) call_.reset();
    ++generation_;
  }
  Think();
}

void SimStoreClient::Drop() {
  if (connection_ != 0) world_.network.Abandon(connection_);
  connection_ = 0;
  connected_ = false;
}

}  // namespace muster::rendezvous
