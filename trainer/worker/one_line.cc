#include "trainer/worker/one_line.h"

#include <c10/util/Exception.h>

namespace muster::trainer {

std::string OneLine(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  const std::string text = torch_error ? torch_error->what_without_backtrace() : error.what();
  return text.substr(0, text.find('\n'));
}

}  // namespace muster::trainer
