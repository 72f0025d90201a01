// Third-party exceptions as one readable line.
#pragma once

#include <exception>
#include <string>

namespace muster::trainer {

// The first line of the message of `error`, without its stack trace: LibTorch's and Gloo's messages
// can fill a screen.
std::string OneLine(const std::exception& error);

}  // namespace muster::trainer
