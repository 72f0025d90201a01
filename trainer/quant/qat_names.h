// Names in a state dict.
#pragma once

#include <string_view>

namespace muster::trainer {

// Whether a tensor called `name` belongs to what --qat observes, which the same model without it
// does not have.
inline bool IsOfFakeQuantize(std::string_view name) {
  return name.find("fake_quant") != std::string_view::npos ||
         name.find("activation_post_process.") != std::string_view::npos;
}

}  // namespace muster::trainer
