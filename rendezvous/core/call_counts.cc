#include "rendezvous/core/call_counts.h"

#include <utility>

namespace muster::rendezvous {

bool CallCounts::Begin(Connection connection, const std::string& tenant) {
  const std::size_t most = tenant.empty() ? limits_.of_all : limits_.of_tenant;
  const auto calls = by_connection_.find(connection);
  const bool other_calls = calls != by_connection_.end();
  if ((other_calls && calls->second.count >= limits_.of_connection) || under_way(tenant) >= most ||
      under_way_ >= limits_.of_all) {
    ++refused_;
    if (other_calls) ++calls->second.refused;
    return false;
  }
  Count(connection, tenant);
  return true;
}

void CallCounts::Resume(Connection connection, const std::string& tenant) {
  Count(connection, tenant);
}

void CallCounts::Count(Connection connection, const std::string& tenant) {
  auto calls = by_connection_.find(connection);
  if (calls == by_connection_.end()) {
    const ByTenant::iterator of = by_tenant_.try_emplace(tenant).first;
    calls = by_connection_.try_emplace(connection, Calls{.tenant = of}).first;
  }
  ++calls->second.count;
  ++calls->second.tenant->second;
  ++under_way_;
}

void CallCounts::End(Connection connection) {
  const auto calls = by_connection_.find(connection);
  if (calls == by_connection_.end()) return;
  --under_way_;
  const ByTenant::iterator tenant = calls->second.tenant;
  if (--calls->second.count == 0) by_connection_.erase(calls);
  if (--tenant->second == 0) by_tenant_.erase(tenant);
}

std::uint64_t CallCounts::TakeRefused(Connection connection) {
  const auto calls = by_connection_.find(connection);
  return calls == by_connection_.end() ? 0 : std::exchange(calls->second.refused, 0);
}

std::size_t CallCounts::under_way(const std::string& tenant) const {
  const auto found = by_tenant_.find(tenant);
  return found == by_tenant_.end() ? 0 : found->second;
}

}  // namespace muster::rendezvous
