#include "trainer/models/autocast.h"

#include "trainer/compat/autocast.h"

namespace muster::trainer {

namespace {

at::DeviceType DeviceOf(bool cuda) {
  return cuda ? at::kCUDA : at::kCPU;
}

}  // namespace

Autocast::Autocast(std::optional<c10::ScalarType> type, bool cuda)
    : type_(type), cuda_(cuda), before_(type ? AutocastOf(cuda) : std::nullopt) {
  if (type_) compat::SetAutocast(DeviceOf(cuda_), *type_, true);
}

Autocast::~Autocast() {
  if (!type_) return;
  compat::SetAutocast(DeviceOf(cuda_), before_.value_or(*type_), before_.has_value());
  at::autocast::clear_cache();
}

std::optional<c10::ScalarType> AutocastOf(bool cuda) {
  return compat::AutocastType(DeviceOf(cuda));
}

UncachedCasts::UncachedCasts() : before_(at::autocast::is_autocast_cache_enabled()) {
  at::autocast::set_autocast_cache_enabled(false);
}

UncachedCasts::~UncachedCasts() {
  at::autocast::set_autocast_cache_enabled(before_);
}

}  // namespace muster::trainer
