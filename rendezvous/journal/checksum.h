// The checksum with which a journal finds that what it remembers has changed.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace muster::rendezvous {

// CRC-32 (zlib's) of the columns. Each comes with its length, as 8 bytes in this machine's order,
// so that bytes cannot move between columns unseen.
std::uint32_t Checksum(std::initializer_list<std::string_view> columns);

}  // namespace muster::rendezvous
