// A daemon's way to a simulated etcd, on which requests and answers are late, lost and repeated.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rendezvous/etcd/etcd.h"
#include "test/rendezvous/etcd/sim_etcd.h"
#include "test/rendezvous/simulation/process.h"
#include "test/rendezvous/simulation/random.h"
#include "test/rendezvous/simulation/scheduler.h"

namespace muster::rendezvous {

// How bad the ways are; shared by all daemons' clients, and changed while they use them.
struct SimWay {
  bool cut_to = false;    // nothing arrives at etcd
  bool cut_from = false;  // no answer comes back
  int lost_per_1000 = 0;
  int late_per_1000 = 0;  // arrives after its sender has given it up
  Duration longest = std::chrono::milliseconds(3);
};

// With the behaviour that Etcd promises. What was sent arrives even when its sender is dead.
class SimEtcdClient final : public etcd::Etcd {
 public:
  struct Mutations {
    bool reads_stale = false;
  };
  // `way` must outlive everything under way.
  SimEtcdClient(Scheduler& scheduler, Random& random, SimEtcd& etcd, const SimWay& way,
                std::shared_ptr<Process> process, Mutations mutations)
      : scheduler_(scheduler),
        random_(random),
        etcd_(etcd),
        way_(way),
        process_(std::move(process)),
        mutations_(mutations) {}

  void Transact(etcd::Transaction transaction,
                std::function<void(absl::StatusOr<etcd::Outcome>)> done) override;
  void Read(etcd::Transaction transaction, int times,
            std::function<void(absl::StatusOr<etcd::Outcome>)> done) override;
  void Attempt(etcd::Transaction transaction,
               std::function<void(absl::StatusOr<etcd::Outcome>)> done) override;
  void Grant(std::chrono::milliseconds ttl,
             std::function<void(absl::StatusOr<etcd::Granted>)> done) override;
  void KeepAlive(etcd::LeaseId lease,
                 std::function<void(absl::StatusOr<std::chrono::milliseconds>)> done) override;
  void TimeToLive(etcd::LeaseId lease,
                  std::function<void(absl::StatusOr<std::chrono::milliseconds>)> done) override;
  void Revoke(etcd::LeaseId lease, std::function<void(absl::Status)> done) override;
  void AwaitDeletion(const std::string& key, etcd::Revision after,
                     std::function<void(absl::Status)> ended) override;
  void Watch(const etcd::Range& range, etcd::Revision after,
             std::function<void(std::vector<etcd::Change>)> changed,
             std::function<void(absl::Status)> ended) override;
  void EndWatch() override { stream_.reset(); }
  void Compact(etcd::Revision revision) override;

 private:
  // What a watch's answers come over, in their order, until it breaks.
  struct Stream {
    std::function<void(std::vector<etcd::Change>)> changed;
    std::function<void(absl::Status)> ended;
    TimePoint last{};  // what is under way arrives
    bool arrived = false;
    bool broken = false;
  };

  // Has `there` done by etcd some time from now, unless it is lost on the way.
  void Send(std::function<void()> there);
  // One attempt: `done` is called once, with etcd's answer or, when that was waited for so long,
  // with Unavailable.
  template <typename Answer>
  void Ask(std::function<absl::StatusOr<Answer>()> there,
           std::function<void(absl::StatusOr<Answer>)> done,
           Duration patience = std::chrono::seconds(1));
  void Try(std::shared_ptr<const etcd::Transaction> transaction,
           std::function<void(absl::StatusOr<etcd::Outcome>)> done);
  // For the last time when that is an error.
  static void Deliver(Scheduler& scheduler, Random& random, const SimWay& way,
                      const std::weak_ptr<Process>& process, const std::shared_ptr<Stream>& stream,
                      const absl::StatusOr<std::vector<etcd::Change>>& told);
  static void Break(const std::shared_ptr<Process>& process, const std::shared_ptr<Stream>& stream);
  Duration Takes() { return Duration(random_.Below(way_.longest.count() + 1)); }

  Scheduler& scheduler_;
  Random& random_;
  SimEtcd& etcd_;
  const SimWay& way_;
  const std::shared_ptr<Process> process_;
  const Mutations mutations_;
  std::shared_ptr<Stream> stream_;  // of the watch; others hold it weakly
};

}  // namespace muster::rendezvous
