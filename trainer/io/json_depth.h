// How deeply the brackets of a JSON text lie within one another.
#pragma once

#include <string_view>

namespace muster::trainer {

// Whether no more than `most` brackets of `text` are open at once. Each level costs a parser far
// more memory than the one byte that it takes in the text, so whoever reads a file of somebody else
// asks this first.
bool IsShallow(std::string_view text, int most);

}  // namespace muster::trainer
