// How byte-level tokenizers write bytes: as one visible character each (bytes_to_unicode in GPT-2's
// encoder.py). A space is "Ġ", a line break "Ċ"; ASCII's visible characters stand for themselves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::trainer {

// Returns the character that stands for `byte`, in UTF-8.
std::string SymbolOf(std::uint8_t byte);

// Returns the bytes that the characters of `symbols` stand for; nullopt if one stands for no byte.
std::optional<std::string> BytesOfSymbols(std::string_view symbols);

}  // namespace muster::trainer
