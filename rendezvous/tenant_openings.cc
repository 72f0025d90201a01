#include "rendezvous/tenant_openings.h"

#include <algorithm>
#include <utility>

namespace muster::rendezvous {

absl::Status TenantOpenings::Ask(const std::string& tenant) {
  const auto failed = failures_.find(tenant);
  if (failed != failures_.end() && options_.now() < failed->second.until) {
    return failed->second.why;
  }
  if (awaited_.try_emplace(tenant).second) {
    waiting_.push_back(tenant);
    Next();
  }
  if (awaited_.contains(tenant)) {
    return absl::UnavailableError("the daemon is still opening what it remembers of this tenant");
  }
  const auto ended = failures_.find(tenant);
  return ended == failures_.end() ? absl::OkStatus() : ended->second.why;
}

bool TenantOpenings::Await(const std::string& tenant, std::function<void()> over) {
  const auto opening = awaited_.find(tenant);
  if (opening == awaited_.end()) return false;
  opening->second.push_back(std::move(over));
  return true;
}

bool TenantOpenings::IsNews(const std::string& tenant, const std::string& why) {
  return std::exchange(failures_[tenant].said, why) != why;
}

void TenantOpenings::Next() {
  while (under_way_ < options_.at_once && !waiting_.empty()) {
    const std::string tenant = std::move(waiting_.front());
    waiting_.pop_front();
    ++under_way_;
    open_(tenant,
          lifetime_.Guard([this, tenant](const absl::Status& status) { End(tenant, status); }));
  }
}

void TenantOpenings::End(const std::string& tenant, const absl::Status& status) {
  --under_way_;
  if (status.ok()) {
    failures_.erase(tenant);
  } else {
    Failure& failure = failures_[tenant];
    failure.why = status;
    failure.pause = std::clamp(2 * failure.pause, options_.after_failure, options_.at_most);
    failure.until = options_.now() + failure.pause;
  }
  const auto opening = awaited_.extract(tenant);
  Next();
  for (const std::function<void()>& over : opening.mapped()) over();
}

}  // namespace muster::rendezvous
