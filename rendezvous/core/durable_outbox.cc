#include "rendezvous/core/durable_outbox.h"

namespace muster::rendezvous {
namespace {

// Whether its receiver must hear of a full disk instead of waiting.
bool IsOwedAtOnce(const OutboundMessage& message) {
  const auto* const answer = std::get_if<StoreAnswer>(&message);
  return answer != nullptr && !answer->patient;
}

OutboundMessage OfFullDisk(const OutboundMessage& message) {
  return StoreAnswer{std::get<StoreAnswer>(message).call,
                     absl::UnavailableError("the daemon's disk, or its etcd, is full; what this "
                                            "call wrote or read is only in its memory")};
}

}  // namespace

void DurableOutbox::JobChanged(const std::string& run_id) {
  if (!journaled_) return;
  changed_.jobs.insert(run_id);
  gate_.Change();
}

void DurableOutbox::JobForgotten(const std::string& run_id) {
  if (!journaled_) return;
  changed_.forgotten.insert(run_id);
  changed_.jobs.erase(run_id);
  changed_.keys.erase(run_id);
  gate_.Change();
}

void DurableOutbox::StoreChanged(const std::string& run_id, const std::vector<std::string>& keys) {
  if (!journaled_ || keys.empty()) return;
  changed_.keys[run_id].insert(keys.begin(), keys.end());
  gate_.Change();
}

void DurableOutbox::Put(OutboundMessage message) {
  if (full_ && IsOwedAtOnce(message)) return PutAtOnce(OfFullDisk(message));
  const auto* const outgoing = std::get_if<Outgoing>(&message);
  if (outgoing != nullptr && std::holds_alternative<Heard>(outgoing->directive())) {
    PutAtOnce(std::move(message));
  } else {
    ++untold_;
    gate_.Put(std::move(message));
  }
}

void DurableOutbox::PutAtOnce(OutboundMessage message) {
  ++untold_;
  prompt_.push_back(std::move(message));
}

std::optional<OutboundMessage> DurableOutbox::Take() {
  std::optional<OutboundMessage> next;
  if (prompt_.empty()) {
    next = gate_.Take();
  } else {
    next = std::move(prompt_.front());
    prompt_.pop_front();
  }
  if (!next) return next;
  MUSTER_CHECK(untold_ > 0);
  --untold_;
  return next;
}

const Changes& DurableOutbox::BeginCommit() {
  gate_.Begin();
  committing_ = std::exchange(changed_, {});
  return committing_;
}

void DurableOutbox::Committed() {
  gate_.Committed();
  full_ = false;
  committing_ = {};
}

void DurableOutbox::DiskFull() {
  gate_.Failed();
  full_ = true;
  for (const OutboundMessage& message : gate_.Withdraw(IsOwedAtOnce)) {
    prompt_.push_back(OfFullDisk(message));
  }
  // Changes to a job that has been forgotten since are no longer written.
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
