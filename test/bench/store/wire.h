// Requests of c10d's TCPStore protocol as PyTorch 1.x sends them (c10d TCPStore.cpp of 1.13.1,
// QueryType), which every server here understands.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::bench {

// The opcodes, and the server's replies.
enum class Op : std::uint8_t {
  kSet = 0,   // nothing
  kGet = 2,   // a string
  kAdd = 3,   // a number
  kWait = 5,  // one byte, when the key exists
};

inline constexpr std::size_t kNumberBytes = sizeof(std::uint64_t);

// Append a request to `out`.
void EncodeSet(std::string_view key, std::string_view value, std::string& out);
void EncodeGet(std::string_view key, std::string& out);
void EncodeAdd(std::string_view key, std::int64_t delta, std::string& out);
void EncodeWait(std::string_view key, std::string& out);

}  // namespace muster::bench
