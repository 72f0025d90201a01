// Reads tokenizers in the JSON format of Hugging Face's tokenizers library.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/text/tokenizer.h"

namespace muster::trainer {

// Reads the tokenizer.json at `path`: byte-level BPE with the pre-tokenizer of GPT-2, or that of
// GPT-4 and Llama 3. Uses its model, pre-tokenizer and added tokens. Ignores truncation, padding
// and the post-processor, which concern the inputs of a model rather than text. Rejects any other
// part that would change the tokens: kInvalidArgument and one sentence with `path` and the part
// that is damaged or not supported.
absl::StatusOr<std::shared_ptr<const Tokenizer>> ReadTokenizer(const std::string& path);

// The same for the contents of such a file; the sentence does not name a path.
absl::StatusOr<std::shared_ptr<const Tokenizer>> ParseTokenizer(std::string_view json);

// Byte-level tokenizers write each byte as one visible character (bytes_to_unicode in GPT-2's
// encoder.py). A space is "Ġ", a line break "Ċ"; ASCII's visible characters stand for themselves.

// Returns the character for `byte`, in UTF-8.
std::string SymbolOf(std::uint8_t byte);

// Returns the bytes for the characters of `symbols`; nullopt if one does not represent a byte.
std::optional<std::string> BytesOfSymbols(std::string_view symbols);

}  // namespace muster::trainer
