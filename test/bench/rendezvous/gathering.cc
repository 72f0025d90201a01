#include "test/bench/rendezvous/gathering.h"

#include <cstdio>
#include <cstdlib>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "rendezvous/client/agent_session.h"

namespace muster::rendezvous::bench {
namespace {

using Clock = std::chrono::steady_clock;

// Workers of each node.
constexpr int kSlots = 8;

[[noreturn]] void GiveUp(const std::string& what) {
  std::fprintf(stderr, "load generator: %s\n", what.c_str());
  std::exit(1);
}

}  // namespace

class Gathering::Agent final : public RendezvousClient::Listener {
 public:
  Agent(Gathering& gathering, const MakeClient& make_client)
      : gathering_(gathering), client_(make_client(*this)) {}

  void Join(const JoinRequest& request) {
    request_ = request;
    client_->Join(request);
  }
  void Fail() {
    client_->Say(WorkersExited{
        round_, {.failure = WorkerFailure{.exit_code = 1, .what = "exited with code 1"}}});
  }
  void WorkersStarted() { client_->Say(rendezvous::WorkersStarted{round_}); }
  void Leave() {
    client_->Say(WorkersExited{round_, {.succeeded = true}});
    client_->Leave("", [this] { ++gathering_.left_; });
  }

  void OnDirective(const Directive& directive) override {
    if (const auto* welcome = std::get_if<Welcome>(&directive)) {
      // It is said again to one that comes back.
      if (!allowed_) ++gathering_.welcomed_;
      LeaseKeeper keeper;
      keeper.OnWelcome(welcome->lease, welcome->durable, TimePoint());
      allowed_ = keeper.last_deadline().value_or(TimePoint()) - TimePoint();
    } else if (const auto* assignment = std::get_if<Assignment>(&directive)) {
      round_ = assignment->id();
      ++gathering_.assigned_;
    } else if (const auto* refused = std::get_if<Refused>(&directive)) {
      GiveUp(refused->sentence);
    } else if (const auto* evicted = std::get_if<Evicted>(&directive)) {
      GiveUp(evicted->sentence);
    } else if (const auto* stop = std::get_if<Stop>(&directive)) {
      if (!gathering_.expects_stop_) GiveUp(stop->reason);
      request_.after = round_.number;
      client_->Join(request_);
    }
  }

  Progress TakeProgress(bool /*all*/) override {
    Progress progress{.round = round_};
    if (!gathering_.tells_steps_ || round_.number < 0) return progress;
    step_ += 10;
    for (int rank = 0; rank < kSlots; ++rank) {
      const bool slow = this == gathering_.agents_.back().get() && rank == 3;
      progress.ranks.push_back({.local_rank = rank,
                                .step = step_,
                                .ago = std::chrono::milliseconds(50),
                                .loss = 2.0 + 1.0 / static_cast<double>(step_),
                                .samples_per_second = 512,
                                .step_seconds = 0.1,
                                .phases = {{"data", slow ? 0.05 : 0.01},
                                           {"forward", 0.02},
                                           {"backward", 0.03},
                                           {"optimizer", 0.005},
                                           {"other", 0.001},
                                           {"wait", slow ? 0.004 : 0.044, true}},
                                .timed_steps = step_});
    }
    return progress;
  }

  // A deadline is a fixed time after the message that was answered was sent, so it tells when that
  // was.
  void OnDeadline(std::optional<TimePoint> deadline) override {
    if (deadline && allowed_ && gathering_.watches_beats_)
      gathering_.beats_.push_back(Clock::now() - (*deadline - *allowed_));
  }

  void OnTrouble(const std::string& trouble) override {
    if (!gathering_.waits_ && !gathering_.expects_loss_) GiveUp(trouble);
  }
  void OnOutOfTouch(const std::string& cause) override {
    if (!gathering_.expects_loss_ && !gathering_.waits_) GiveUp(cause);
    ++gathering_.lost_;
  }
  void OnBackInTouch(Duration) override { ++gathering_.back_; }
  void OnFenced(const std::string& why) override {
    if (!gathering_.expects_loss_) GiveUp(why);
    ++gathering_.fenced_;
  }
  void OnLost(const absl::Status& status) override { GiveUp(std::string(status.message())); }

 private:
  Gathering& gathering_;
  const std::unique_ptr<RendezvousClient> client_;
  std::int64_t step_ = 0;
  std::optional<Duration> allowed_;  // from when a message was sent to the deadline it brings
  RoundId round_;
  JoinRequest request_;
};

Gathering::Gathering(std::string run_id, int count, const MakeClient& make_client, Duration lease)
    : run_id_(std::move(run_id)), lease_(lease) {
  for (int i = 0; i < count; ++i) agents_.push_back(std::make_unique<Agent>(*this, make_client));
}

Gathering::~Gathering() = default;

void Gathering::Join(int how_many) {
  for (int i = 0; i < how_many; ++i, ++joined_) agents_[joined_]->Join(RequestOf(joined_));
}

void Gathering::WorkersStarted() {
  for (const auto& agent : agents_) agent->WorkersStarted();
}

void Gathering::FailOne() {
  expects_stop_ = true;
  assigned_ = 0;
  agents_.front()->Fail();
}

void Gathering::Leave() {
  for (const auto& agent : agents_) agent->Leave();
}

JoinRequest Gathering::RequestOf(int index) const {
  const int nodes = size();
  return {.run_id = run_id_,
          .settings = {.min_nodes = nodes,
                       .max_nodes = nodes,
                       .lease = lease_,
                       .keep_alive = std::chrono::seconds(1),
                       .max_restarts = 1,
                       .straggler_threshold = 0.3},
          .node = {.node_id = absl::StrCat("node-", index),
                   .host = absl::StrCat("host", index),
                   .address = absl::StrCat("10.0.", index / 256, ".", index % 256),
                   .master_port = 40'000,
                   .slots = kSlots}};
}

}  // namespace muster::rendezvous::bench
