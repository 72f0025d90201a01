#include "rendezvous/core/delivery.h"

namespace muster::rendezvous {
namespace {

// Whether it is for somebody who must hear that the disk is full instead.
bool IsOwedAtOnce(const Telling& telling) {
  const auto* const answer = std::get_if<StoreAnswer>(&telling);
  return answer != nullptr && !answer->patient;
}

Telling OfFullDisk(const Telling& telling) {
  return StoreAnswer{std::get<StoreAnswer>(telling).call,
                     absl::UnavailableError("the daemon's disk is full, and what this call has "
                                            "written or read is in its memory alone")};
}

}  // namespace

void Delivery::JobChanged(const std::string& run_id) {
  if (!journaled_) return;
  changed_.jobs.insert(run_id);
  gate_.Change();
}

void Delivery::JobForgotten(const std::string& run_id) {
  if (!journaled_) return;
  changed_.forgotten.insert(run_id);
  changed_.jobs.erase(run_id);
  changed_.keys.erase(run_id);
  gate_.Change();
}

void Delivery::StoreChanged(const std::string& run_id, const std::vector<std::string>& keys) {
  if (!journaled_ || keys.empty()) return;
  changed_.keys[run_id].insert(keys.begin(), keys.end());
  gate_.Change();
}

void Delivery::Put(Telling telling) {
  if (full_ && IsOwedAtOnce(telling)) return PutAtOnce(OfFullDisk(telling));
  const auto* const outgoing = std::get_if<Outgoing>(&telling);
  if (outgoing != nullptr && std::holds_alternative<Heard>(outgoing->directive())) {
    PutAtOnce(std::move(telling));
  } else {
    ++untold_;
    gate_.Put(std::move(telling));
  }
}

void Delivery::PutAtOnce(Telling telling) {
  ++untold_;
  prompt_.push_back(std::move(telling));
}

std::optional<Telling> Delivery::Take() {
  std::optional<Telling> next;
  if (prompt_.empty()) {
    next = gate_.Take();
  } else {
    next = std::move(prompt_.front());
    prompt_.pop_front();
  }
  if (next) --untold_;
  return next;
}

const Changes& Delivery::BeginCommit() {
  gate_.Begin();
  committing_ = std::exchange(changed_, {});
  return committing_;
}

void Delivery::Committed() {
  gate_.Committed();
  full_ = false;
  committing_ = {};
}

void Delivery::DiskFull() {
  gate_.Failed();
  full_ = true;
  for (const Telling& telling : gate_.Withdraw(IsOwedAtOnce)) {
    prompt_.push_back(OfFullDisk(telling));
  }
  // What was to be written of a job that has been forgotten since is not written any more.
  for (const std::string& run_id : committing_.jobs) {
    if (!changed_.forgotten.contains(run_id)) changed_.jobs.insert(run_id);
  }
  for (const auto& [run_id, keys] : committing_.keys) {
    if (changed_.forgotten.contains(run_id)) continue;
    changed_.keys[run_id].insert(keys.begin(), keys.end());
  }
  changed_.forgotten.insert(committing_.forgotten.begin(), committing_.forgotten.end());
  committing_ = {};
}

}  // namespace muster::rendezvous
