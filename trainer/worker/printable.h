// Text that a terminal shows and does not obey.
#pragma once

#include <string>
#include <string_view>

namespace muster::trainer {

// `text` with '?' for each control character of ASCII and of Unicode's Latin-1 block, such as names
// of files may hold: they would break lines, or command the terminal. Line feeds are kept with
// `lines`.
std::string Printable(std::string_view text, bool lines = false);

}  // namespace muster::trainer
