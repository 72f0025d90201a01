#include "test/rendezvous/etcd/sim_etcd.h"

#include <algorithm>
#include <variant>

#include "absl/strings/str_cat.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;

// --max-txn-ops and --max-request-bytes, as they are by default.
constexpr std::size_t kMostOperations = 128;
constexpr std::size_t kMostBytes = 3 << 19;

std::string EndOf(const std::string& key, const std::string& end) {
  return end.empty() ? key + '\0' : end;
}

}  // namespace

bool SimEtcd::Holds(const Keys& keys, const etcd::Condition& condition) {
  if (const auto* created = std::get_if<etcd::WasCreated>(&condition)) {
    const auto key = keys.find(created->key);
    return (key == keys.end() ? 0 : key->second.created) == created->in;
  }
  const auto& value = std::get<etcd::HasValue>(condition);
  const auto key = keys.find(value.key);
  return key != keys.end() && key->second.value == value.value;
}

etcd::Outcome::Found SimEtcd::Find(const Keys& keys, const etcd::Get& get) {
  etcd::Outcome::Found found;
  const std::string end = EndOf(get.key, get.end);
  for (auto key = keys.lower_bound(get.key); key != keys.end() && key->first < end; ++key) {
    if (get.limit > 0 && found.keys.size() == static_cast<std::size_t>(get.limit)) {
      found.more = true;
      break;
    }
    found.keys.push_back(key->second);
  }
  return found;
}

absl::Status SimEtcd::Check(const std::vector<etcd::Operation>& operations) const {
  if (operations.size() > kMostOperations) {
    return absl::InvalidArgumentError("etcdserver: too many operations in txn request");
  }
  std::size_t bytes = 0;
  std::vector<std::pair<std::string, std::string>> changed;
  for (const etcd::Operation& operation : operations) {
    std::pair<std::string, std::string> range;
    if (const auto* put = std::get_if<etcd::Put>(&operation)) {
      if (put->lease != 0 && !leases_.contains(put->lease)) {
        return absl::NotFoundError("etcdserver: requested lease not found");
      }
      bytes += put->key.size() + put->value.size();
      range = {put->key, EndOf(put->key, "")};
    } else if (const auto* gone = std::get_if<etcd::Delete>(&operation)) {
      range = {gone->key, EndOf(gone->key, gone->end)};
    } else {
      continue;
    }
    for (const auto& [key, end] : changed) {
      if (key < range.second && range.first < end) {
        return absl::InvalidArgumentError("etcdserver: duplicate key given in txn request");
      }
    }
    changed.push_back(std::move(range));
  }
  if (bytes > kMostBytes) return absl::InvalidArgumentError("etcdserver: request is too large");
  if (bytes > 0 && scheduler_.now() < full_until_) {
    return absl::ResourceExhaustedError("etcdserver: mvcc: database space exceeded");
  }
  return absl::OkStatus();
}

absl::StatusOr<etcd::Outcome> SimEtcd::Apply(const etcd::Transaction& transaction) {
  etcd::Outcome outcome{.held = true};
  for (const etcd::Condition& condition : transaction.conditions) {
    outcome.held = outcome.held && Holds(keys_, condition);
  }
  // Before it looks at the conditions.
  for (const auto* operations : {&transaction.then, &transaction.otherwise}) {
    if (absl::Status status = Check(*operations); !status.ok()) return status;
  }
  const auto& operations = outcome.held ? transaction.then : transaction.otherwise;
  const bool changes = std::any_of(operations.begin(), operations.end(), [](const auto& each) {
    return !std::holds_alternative<etcd::Get>(each);
  });
  if (changes) {
    if (random_.Chance(1, 3)) stale_ = keys_;
    ++revision_;
  }
  for (const etcd::Operation& operation : operations) {
    if (const auto* put = std::get_if<etcd::Put>(&operation)) {
      const auto known = keys_.find(put->key);
      keys_[put->key] = {.key = put->key,
                         .value = put->value,
                         .created = known == keys_.end() ? revision_ : known->second.created,
                         .lease = put->lease};
      changing_.push_back({revision_, put->key, put->value});
    } else if (const auto* gone = std::get_if<etcd::Delete>(&operation)) {
      const std::string end = EndOf(gone->key, gone->end);
      std::vector<std::string> erased;
      for (auto key = keys_.lower_bound(gone->key); key != keys_.end() && key->first < end; ++key) {
        erased.push_back(key->first);
      }
      for (const std::string& key : erased) Erase(key);
    } else {
      outcome.found.push_back(Find(keys_, std::get<etcd::Get>(operation)));
    }
  }
  outcome.revision = revision_;
  Tell();
  return outcome;
}

etcd::Outcome SimEtcd::ReadStale(const etcd::Transaction& transaction) const {
  etcd::Outcome outcome{.held = true, .revision = revision_};
  for (const etcd::Operation& operation : transaction.then) {
    outcome.found.push_back(Find(stale_, std::get<etcd::Get>(operation)));
  }
  return outcome;
}

void SimEtcd::Erase(const std::string& key) {
  keys_.erase(key);
  deleted_[key] = revision_;
  changing_.push_back({revision_, key, std::nullopt});
  std::vector<Waiting> told;
  std::erase_if(waiting_, [&](Waiting& each) {
    if (each.key != key) return false;
    told.push_back(std::move(each));
    return true;
  });
  for (const Waiting& each : told) each.ended(absl::OkStatus());
}

etcd::Granted SimEtcd::Grant(milliseconds ttl) {
  const etcd::LeaseId lease = ++last_lease_;
  leases_[lease] = {.ttl = ttl, .ends = scheduler_.now() + ttl};
  Arm(lease);
  return {lease, ttl};
}

void SimEtcd::Arm(etcd::LeaseId lease) {
  Lease& armed = leases_.at(lease);
  const std::uint64_t renewal = ++armed.renewal;
  scheduler_.At(armed.ends + milliseconds(random_.Below(500)), [this, lease, renewal] {
    const auto found = leases_.find(lease);
    if (clock_is_back_) return;
    if (found != leases_.end() && found->second.renewal == renewal) Revoke(lease);
  });
}

std::optional<milliseconds> SimEtcd::KeepAlive(etcd::LeaseId lease) {
  const auto found = leases_.find(lease);
  if (found == leases_.end()) return std::nullopt;
  found->second.ends = std::max(found->second.ends, scheduler_.now() + found->second.ttl);
  Arm(lease);
  return found->second.ttl;
}

std::optional<milliseconds> SimEtcd::TimeToLive(etcd::LeaseId lease) const {
  const auto found = leases_.find(lease);
  if (found == leases_.end()) return std::nullopt;
  // In whole seconds, the rest is cut off.
  return std::chrono::duration_cast<std::chrono::seconds>(found->second.ends - scheduler_.now());
}

void SimEtcd::ExtendLeases() {
  for (auto& [lease, state] : leases_) {
    state.ends = std::max(state.ends, scheduler_.now() + state.ttl + milliseconds(1000));
    Arm(lease);
  }
}

void SimEtcd::Revoke(etcd::LeaseId lease) {
  if (leases_.erase(lease) == 0) return;
  std::vector<std::string> keys;
  for (const auto& [name, key] : keys_) {
    if (key.lease == lease) keys.push_back(name);
  }
  if (!keys.empty()) ++revision_;
  for (const std::string& key : keys) Erase(key);
  Tell();
}

void SimEtcd::AwaitDeletion(const std::string& key, etcd::Revision after,
                            std::function<void(absl::Status)> ended) {
  if (after < compacted_) {
    return ended(absl::UnavailableError("etcdserver: mvcc: required revision has been compacted"));
  }
  const auto gone = deleted_.find(key);
  if (gone != deleted_.end() && gone->second > after) return ended(absl::OkStatus());
  waiting_.push_back({key, std::move(ended)});
}

template <typename Changes>
std::vector<etcd::Change> SimEtcd::In(const etcd::Range& range, const Changes& changes,
                                      etcd::Revision after) {
  std::vector<etcd::Change> in;
  for (const etcd::Change& change : changes) {
    if (change.revision > after && range.key <= change.key && change.key < range.end) {
      in.push_back(change);
    }
  }
  return in;
}

void SimEtcd::Watch(const etcd::Range& range, etcd::Revision after,
                    std::function<bool(const absl::StatusOr<std::vector<etcd::Change>>&)> tell) {
  if (after + 1 < compacted_) {
    tell(absl::OutOfRangeError("etcdserver: mvcc: required revision has been compacted"));
    return;
  }
  const std::vector<etcd::Change> past = In(range, past_, after);
  if (past.empty() || tell(past)) watchers_.push_back({range, std::move(tell)});
}

void SimEtcd::Tell() {
  const std::vector<etcd::Change> changes = std::exchange(changing_, {});
  if (changes.empty()) return;
  past_.insert(past_.end(), changes.begin(), changes.end());
  std::erase_if(watchers_, [&](const Watcher& watcher) {
    const std::vector<etcd::Change> in = In(watcher.range, changes, 0);
    return !in.empty() && !watcher.tell(in);
  });
}

void SimEtcd::Compact(etcd::Revision revision) {
  compacted_ = std::max(compacted_, revision);
  while (!past_.empty() && past_.front().revision < compacted_) past_.pop_front();
}

std::map<std::string, std::string> SimEtcd::Values(const etcd::Range& range) const {
  std::map<std::string, std::string> values;
  for (auto key = keys_.lower_bound(range.key); key != keys_.end() && key->first < range.end;
       ++key) {
    values.emplace(key->first, key->second.value);
  }
  return values;
}

etcd::LeaseId SimEtcd::HolderOf(const std::string& key) const {
  const auto found = keys_.find(key);
  return found == keys_.end() ? 0 : found->second.lease;
}

}  // namespace muster::rendezvous
