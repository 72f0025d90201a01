#include "trainer/models/autocast.h"

#include "trainer/compat/autocast.h"

namespace muster::trainer {

Autocast::Autocast(std::optional<c10::ScalarType> type, bool cuda) : type_(type), cuda_(cuda) {
  if (type_) compat::SetAutocast(cuda_ ? at::kCUDA : at::kCPU, *type_, true);
}

Autocast::~Autocast() {
  if (!type_) return;
  compat::SetAutocast(cuda_ ? at::kCUDA : at::kCPU, *type_, false);
  at::autocast::clear_cache();
}

}  // namespace muster::trainer
