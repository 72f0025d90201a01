// Replaces a header that is missing from Debian's LibTorch 1.13 package although c10d/reducer.hpp
// includes it. The reducer uses two names from it, and calls the context only under distributed
// autograd, which the trainer does not use. Where the real header is installed (2.x), that one is
// used.
#pragma once

#if __has_include_next(<torch/csrc/distributed/autograd/context/context.h>)
#include_next <torch/csrc/distributed/autograd/context/context.h>
#else

#include <functional>
#include <memory>

#include <torch/csrc/autograd/variable.h>

namespace torch::distributed::autograd {

// As declared in PyTorch 1.13, torch/csrc/distributed/autograd/context/context.h; never created
// here.
class DistAutogradContext {
 public:
  using GradCallback = std::function<bool(torch::autograd::Variable&)>;
};
using ContextPtr = std::shared_ptr<DistAutogradContext>;

}  // namespace torch::distributed::autograd

#endif
