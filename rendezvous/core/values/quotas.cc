#include "rendezvous/core/values/quotas.h"

#include "absl/strings/cord.h"

namespace muster::rendezvous {
namespace {

// Stays in this process: the wire carries only a status' code and message.
constexpr absl::string_view kPayload = "muster/limit";

}  // namespace

CallCounts::Verdict CallCounts::Begin(Connection connection, const std::string& tenant,
                                      TimePoint now) {
  Settle(now);
  const std::size_t most = tenant.empty() ? limits_.of_all : limits_.of_tenant;
  auto calls = by_connection_.find(connection);
  const bool other_calls = calls != by_connection_.end();
  const bool own_limit = other_calls && calls->second.count >= limits_.of_connection;
  if (own_limit || under_way(tenant) >= most || under_way_ >= limits_.of_all) {
    ++(own_limit                      ? refused_.of_connection
       : under_way_ >= limits_.of_all ? refused_.of_all
                                      : refused_.of_tenant);
    if (other_calls) ++calls->second.refused;
    return own_limit && ++calls->second.own_limit == limits_.refused_of_connection
               ? Verdict::kFlood
               : Verdict::kRefused;
  }
  if (!other_calls) {
    const ByTenant::iterator of = by_tenant_.try_emplace(tenant).first;
    calls = by_connection_.try_emplace(connection, Calls{.tenant = of}).first;
  }
  ++calls->second.count;
  ++calls->second.tenant->second;
  ++under_way_;
  return Verdict::kBegun;
}

void CallCounts::Settle(TimePoint now) {
  for (; !lingering_.empty() && lingering_.front().first <= now; lingering_.pop_front()) {
    End(lingering_.front().second);
  }
}

void CallCounts::End(Connection connection) {
  const auto calls = by_connection_.find(connection);
  if (calls == by_connection_.end()) return;
  --under_way_;
  const ByTenant::iterator tenant = calls->second.tenant;
  if (--calls->second.count == 0) by_connection_.erase(calls);
  if (--tenant->second == 0) by_tenant_.erase(tenant);
}

bool CallCounts::ComesFrom(Connection connection, const std::string& peer) {
  const auto calls = by_connection_.find(connection);
  if (calls == by_connection_.end()) return false;
  if (calls->second.peer.empty()) calls->second.peer = peer;
  return calls->second.own_limit >= limits_.refused_of_connection;
}

std::string CallCounts::PeerOf(Connection connection) const {
  const auto calls = by_connection_.find(connection);
  return calls == by_connection_.end() ? "" : calls->second.peer;
}

std::uint64_t CallCounts::TakeRefused(Connection connection) {
  const auto calls = by_connection_.find(connection);
  return calls == by_connection_.end() ? 0 : std::exchange(calls->second.refused, 0);
}

std::size_t CallCounts::under_way(const std::string& tenant) const {
  const auto found = by_tenant_.find(tenant);
  return found == by_tenant_.end() ? 0 : found->second;
}

void LimitCounts::Count(const absl::Status& status) {
  if (status.ok()) return;
  if (const Limit* const limit = LimitOf(status)) Count(*limit);
}

std::uint64_t LimitCounts::of(const Limit& limit) const {
  const auto found = counts_.find(&limit);
  return found == counts_.end() ? 0 : found->second;
}

absl::Status LimitRefusal(const Limit& limit, absl::string_view sentence) {
  absl::Status status = absl::ResourceExhaustedError(sentence);
  status.SetPayload(kPayload, absl::Cord(absl::string_view(limit.name.data(), limit.name.size())));
  return status;
}

const Limit* LimitOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  if (!payload) return nullptr;
  const std::string name(*payload);
  for (const Limit* const limit : limits::kAll) {
    if (limit->name == name) return limit;
  }
  return nullptr;
}

}  // namespace muster::rendezvous
