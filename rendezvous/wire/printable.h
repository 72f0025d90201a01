// Text from elsewhere, made safe to show and to send on.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::rendezvous {

// `text` cut to `limit` bytes, with '?' for each control character (line feeds and tabs are kept)
// and for each byte that is not UTF-8. The result is valid UTF-8: protobuf refuses a whole message
// for one string that is not, so one node's odd file name would end everyone's streams.
std::string Printable(std::string_view text, std::size_t limit);

// The same on one line: line feeds and tabs become spaces.
std::string OneLine(std::string_view text, std::size_t limit);

}  // namespace muster::rendezvous
