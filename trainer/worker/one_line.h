// Foreign exceptions as one line for people.
#pragma once

#include <exception>
#include <string>

namespace muster::trainer {

// What `error` says, without its stack trace and cut at the first line break. LibTorch's and Gloo's
// messages go on for a screen.
std::string OneLine(const std::exception& error);

}  // namespace muster::trainer
