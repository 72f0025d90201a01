#include "test/bench/store/wire.h"

#include <bit>
#include <cstring>

namespace muster::bench {
namespace {

// Numbers go out as they are in memory.
static_assert(std::endian::native == std::endian::little);

void AppendNumber(std::uint64_t number, std::string& out) {
  char bytes[kNumberBytes];
  std::memcpy(bytes, &number, sizeof bytes);
  out.append(bytes, sizeof bytes);
}

void AppendString(std::string_view text, std::string& out) {
  AppendNumber(text.size(), out);
  out += text;
}

void Begin(Op op, std::string& out) {
  out.push_back(static_cast<char>(op));
}

}  // namespace

void EncodeSet(std::string_view key, std::string_view value, std::string& out) {
  Begin(Op::kSet, out);
  AppendString(key, out);
  AppendString(value, out);
}

void EncodeGet(std::string_view key, std::string& out) {
  Begin(Op::kGet, out);
  AppendString(key, out);
}

void EncodeAdd(std::string_view key, std::int64_t delta, std::string& out) {
  Begin(Op::kAdd, out);
  AppendString(key, out);
  AppendNumber(static_cast<std::uint64_t>(delta), out);
}

void EncodeWait(std::string_view key, std::string& out) {
  Begin(Op::kWait, out);
  AppendNumber(1, out);
  AppendString(key, out);
}

}  // namespace muster::bench
