// An etcd in a simulated world: what its members agree on, as one store with revisions and leases.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "rendezvous/etcd/etcd.h"
#include "test/rendezvous/simulation/random.h"
#include "test/rendezvous/simulation/scheduler.h"

namespace muster::rendezvous {

// As etcd 3.4: one transaction after the other, limits included. A lease ends when its time is
// over, or up to half a second later.
class SimEtcd {
 public:
  SimEtcd(Scheduler& scheduler, Random& random) : scheduler_(scheduler), random_(random) {}
  SimEtcd(const SimEtcd&) = delete;
  SimEtcd& operator=(const SimEtcd&) = delete;

  absl::StatusOr<etcd::Outcome> Apply(const etcd::Transaction& transaction);
  // A transaction that only reads, answered by a member that has not heard of the last changes.
  etcd::Outcome ReadStale(const etcd::Transaction& transaction) const;

  etcd::Granted Grant(std::chrono::milliseconds ttl);
  // nullopt: it has ended.
  std::optional<std::chrono::milliseconds> KeepAlive(etcd::LeaseId lease);
  // nullopt: it has ended.
  std::optional<std::chrono::milliseconds> TimeToLive(etcd::LeaseId lease) const;
  void Revoke(etcd::LeaseId lease);

  // Calls `ended` when the key is deleted after the revision; at once with an error if what was is
  // no longer known.
  void AwaitDeletion(const std::string& key, etcd::Revision after,
                     std::function<void(absl::Status)> ended);

  // Tells each change to keys of the range after the revision, those of one revision at once; at
  // once those that there were. Ends when the function returns false, or after an error: OutOfRange
  // if what was is no longer known.
  void Watch(const etcd::Range& range, etcd::Revision after,
             std::function<bool(const absl::StatusOr<std::vector<etcd::Change>>&)> tell);

  void Compact(etcd::Revision revision);

  // Its quota is used up, until the time.
  void FullUntil(TimePoint until) { full_until_ = until; }
  // The wall clock of its leader is set back, for ever: no lease ends by itself any more.
  void SetClockBack() { clock_is_back_ = true; }
  // What its leader granted lasts longer, as when another member becomes its leader.
  void ExtendLeases();

  // The lease that a key has; 0: there is no such key.
  etcd::LeaseId HolderOf(const std::string& key) const;
  std::size_t keys() const { return keys_.size(); }
  etcd::Revision revision() const { return revision_; }
  // What is in the range now.
  std::map<std::string, std::string> Values(const etcd::Range& range) const;

 private:
  using Keys = std::map<std::string, etcd::KeyValue>;
  struct Lease {
    std::chrono::milliseconds ttl{};
    TimePoint ends{};
    std::uint64_t renewal = 0;
  };
  struct Waiting {
    std::string key;
    std::function<void(absl::Status)> ended;
  };

  struct Watcher {
    etcd::Range range;
    std::function<bool(const absl::StatusOr<std::vector<etcd::Change>>&)> tell;
  };

  // Those of the changes that are in the range and after the revision.
  template <typename Changes>
  static std::vector<etcd::Change> In(const etcd::Range& range, const Changes& changes,
                                      etcd::Revision after);
  // The revision is done.
  void Tell();
  static bool Holds(const Keys& keys, const etcd::Condition& condition);
  static etcd::Outcome::Found Find(const Keys& keys, const etcd::Get& get);
  absl::Status Check(const std::vector<etcd::Operation>& operations) const;
  void Erase(const std::string& key);
  void Arm(etcd::LeaseId lease);

  Scheduler& scheduler_;
  Random& random_;
  etcd::Revision revision_ = 1;
  etcd::Revision compacted_ = 0;
  Keys keys_;
  Keys stale_;  // as they were some changes ago
  std::map<etcd::LeaseId, Lease> leases_;
  etcd::LeaseId last_lease_ = 0;
  std::map<std::string, etcd::Revision> deleted_;  // when each key was last
  std::vector<Waiting> waiting_;
  std::deque<etcd::Change> past_;       // since the last compaction
  std::vector<etcd::Change> changing_;  // in this revision
  std::vector<Watcher> watchers_;
  TimePoint full_until_{};
  bool clock_is_back_ = false;
};

}  // namespace muster::rendezvous
