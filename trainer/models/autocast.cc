#include "trainer/models/autocast.h"

#include "trainer/compat/autocast.h"

namespace muster::trainer {

Bf16Autocast::Bf16Autocast(bool enabled, bool cuda) : enabled_(enabled), cuda_(cuda) {
  if (enabled_) compat::SetBf16Autocast(cuda_ ? at::kCUDA : at::kCPU, true);
}

Bf16Autocast::~Bf16Autocast() {
  if (!enabled_) return;
  compat::SetBf16Autocast(cuda_ ? at::kCUDA : at::kCPU, false);
  at::autocast::clear_cache();
}

}  // namespace muster::trainer
