#include "test/linearizability/recorder.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "absl/status/statusor.h"
#include "test/linearizability/attending_agent.h"
#include "test/linearizability/calls.h"
#include "test/linearizability/chance.h"
#include "test/linearizability/daemon_process.h"
#include "test/linearizability/faulty_link.h"
#include "test/linearizability/store_client.h"
#include "test/linearizability/traffic.h"
#include "test/support/run_until.h"
#include "test/support/wait_until.h"

namespace muster::linearizability {
namespace {

using std::chrono::milliseconds;

constexpr const char* kRunId = "histories";
constexpr int kClients = 6;
constexpr int kCallsPerClient = 60;

enum class Fault { kKill, kPause, kPartition };
constexpr Fault kFaults[] = {Fault::kKill,  Fault::kKill,      Fault::kKill,
                             Fault::kPause, Fault::kPartition, Fault::kPartition};

// All but the clients' threads happens on the loop's thread, and these only post to it.
class Recorder {
 public:
  explicit Recorder(const RecordOptions& options)
      : options_(options), chance_(options.seed), daemon_(options.state_dir) {
    for (int i = 0; i < kClients; ++i) {
      links_.push_back(std::make_shared<FaultyLink>(loop_, daemon_.port()));
    }
    DrawPlan();
  }

  Recording Run() {
    daemon_.Start();
    if (!daemon_.WaitUntilListening()) return Failed("the daemon does not start");
    agent_ = std::make_unique<AttendingAgent>(loop_, daemon_.port(), daemon_.credentials(), kRunId);
    if (!test::RunUntil(loop_, [&] { return agent_->had_a_place(); })) {
      return Failed("the agent gets no place: " + agent_->trouble());
    }
    for (int i = 0; i < kClients; ++i) {
      threads_.emplace_back([this, i, port = links_[i]->port()] { CallByChance(i, port); });
    }
    if (!test::RunUntil(loop_, [&] { return finished_ == kClients && open_faults_ == 0; })) {
      return Failed("the clients do not come to an end");
    }
    threads_.emplace_back([this] { ReadAll(); });
    if (!test::RunUntil(loop_, [&] { return finished_ == kClients + 1; })) {
      return Failed("the last reads do not come to an end");
    }
    if (recording_.history.empty() || !recording_.history.back().span.known()) {
      return Failed("the daemon has not come back");
    }
    return Finished();
  }

 private:
  struct Planned {
    std::size_t after_calls = 0;
    Fault fault = Fault::kKill;
  };

  // Evenly spread over the calls, but for a little chance.
  void DrawPlan() {
    std::vector<Fault> faults(std::begin(kFaults), std::end(kFaults));
    const int distance = kClients * kCallsPerClient / static_cast<int>(faults.size() + 1);
    for (int at = distance; !faults.empty(); at += distance) {
      const auto drawn = faults.begin() + chance_.Below(static_cast<int>(faults.size()));
      plan_.push_back({static_cast<std::size_t>(at + chance_.Below(distance / 2)), *drawn});
      faults.erase(drawn);
    }
  }

  StorePlace PlaceAt(std::uint16_t port) const {
    return {{"127.0.0.1:" + std::to_string(port)}, daemon_.credentials(), kRunId};
  }

  // On a client's thread.
  void CallByChance(int number, std::uint16_t port) {
    StoreClient client(number, PlaceAt(port));
    Traffic traffic(options_.seed, number);
    Chance chance(options_.seed * 1000 + 500 + static_cast<std::uint64_t>(number));
    for (int i = 0; i < kCallsPerClient; ++i) {
      auto operation = client.Do(traffic.Next(), milliseconds(chance.Between(100, 400)));
      if (operation.ok()) traffic.Saw(*operation);
      Post([this, operation = std::move(operation)] { Take(operation); });
    }
    Post([this] { ++finished_; });
  }

  // On a thread of its own.
  void ReadAll() {
    StoreClient client(kClients, PlaceAt(daemon_.port()));
    const auto read = [&](const std::string& key) {
      auto operation = client.Do(Get(key), test::kDeadline / 2);
      const bool ok = operation.ok();
      Post([this, operation = std::move(operation)] { Take(operation); });
      return ok;
    };
    // A daemon that has forgotten the job has none until the agent is back.
    if (test::WaitUntil([&] { return read(kKeys.front()); })) {
      for (const std::string& key : kKeys) read(key);
    }
    Post([this] { ++finished_; });
  }

  void Post(std::function<void()> task) { boost::asio::post(loop_, std::move(task)); }

  void Take(const absl::StatusOr<StoreOperation>& operation) {
    ++num_calls_;
    if (operation.ok()) {
      recording_.history.push_back(*operation);
    } else if (std::string refusal(operation.status().ToString());
               std::find(recording_.refusals.begin(), recording_.refusals.end(), refusal) ==
               recording_.refusals.end()) {
      recording_.refusals.push_back(std::move(refusal));
    }
    for (; !plan_.empty() && plan_.front().after_calls <= num_calls_; plan_.erase(plan_.begin())) {
      Inject(plan_.front().fault);
    }
  }

  void Inject(Fault fault) {
    switch (fault) {
      case Fault::kKill:
        return Kill();
      case Fault::kPause:
        daemon_.Pause();
        return Later([this] { daemon_.Continue(); });
      case Fault::kPartition:
        return Partition();
    }
  }

  void Kill() {
    if (!daemon_.running()) return;
    daemon_.Kill();
    recording_.kills_ns.push_back(std::chrono::steady_clock::now().time_since_epoch() /
                                  std::chrono::nanoseconds(1));
    Later([this] {
      if (options_.forgets) daemon_.ForgetState();
      daemon_.Start();
    });
  }

  void Partition() {
    constexpr Flow kFlows[] = {Flow::kPass, Flow::kHold, Flow::kDrop};
    Flows flows;
    while (flows.to_daemon == Flow::kPass && flows.to_client == Flow::kPass) {
      flows = {chance_.OneOf(kFlows), chance_.OneOf(kFlows)};
    }
    // One at least.
    std::vector<std::shared_ptr<FaultyLink>> cut = {chance_.OneOf(links_)};
    for (const auto& link : links_) {
      if (chance_.Happens(1, 2)) cut.push_back(link);
    }
    for (const auto& link : cut) link->SetFlows(flows);
    Later([cut] {
      for (const auto& link : cut) link->SetFlows({});
    });
  }

  // Ends a fault, some time from now.
  void Later(std::function<void()> heal) {
    ++open_faults_;
    const auto timer =
        std::make_shared<boost::asio::steady_timer>(loop_, milliseconds(chance_.Between(10, 250)));
    timer->async_wait([this, timer, heal = std::move(heal)](const boost::system::error_code&) {
      --open_faults_;
      heal();
    });
  }

  Recording Failed(const std::string& what) {
    daemon_.Kill();
    recording_.trouble = what + "; the daemon said: " + daemon_.last_log();
    return Finished();
  }

  Recording Finished() {
    // The clients' last calls run out of patience, if there are any.
    threads_.clear();
    agent_.reset();
    links_.clear();
    // gRPC lets go of the agent's stream by way of the loop.
    loop_.restart();
    loop_.run();
    return std::move(recording_);
  }

  const RecordOptions options_;
  Chance chance_;
  std::vector<Planned> plan_;

  boost::asio::io_context loop_;
  DaemonProcess daemon_;
  std::unique_ptr<AttendingAgent> agent_;
  std::vector<std::shared_ptr<FaultyLink>> links_;

  Recording recording_;
  std::size_t num_calls_ = 0;
  int finished_ = 0;     // clients
  int open_faults_ = 0;  // that are to be ended
  std::vector<std::jthread> threads_;
};

}  // namespace

std::size_t Recording::CallsAt(std::int64_t time_ns) const {
  return static_cast<std::size_t>(
      std::count_if(history.begin(), history.end(), [time_ns](const StoreOperation& operation) {
        return operation.span.call_ns < time_ns && time_ns < operation.ended_ns;
      }));
}

std::size_t Recording::WritesAt(std::int64_t time_ns) const {
  return static_cast<std::size_t>(
      std::count_if(history.begin(), history.end(), [time_ns](const StoreOperation& operation) {
        return operation.call.writes() && operation.span.call_ns < time_ns &&
               time_ns < operation.ended_ns;
      }));
}

std::size_t Recording::UnknownOutcomes() const {
  return static_cast<std::size_t>(
      std::count_if(history.begin(), history.end(), [](const StoreOperation& operation) {
        return operation.call.writes() && !operation.span.known();
      }));
}

Recording Record(const RecordOptions& options) {
  return Recorder(options).Run();
}

}  // namespace muster::linearizability
