// Reads tokenizers in the JSON format of Hugging Face's tokenizers library.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/text/tokenizer.h"

namespace muster::trainer {

// Reads the tokenizer.json at `path`: byte-level BPE with the pre-tokenizer of GPT-2, or that of
// GPT-4 and Llama 3. Uses its model, pre-tokenizer and added tokens. Ignores truncation, padding
// and the post-processor, which are about the inputs of a model rather than about text. Refuses any
// other part that would change the tokens: kInvalidArgument and one sentence with `path` and the
// part that is damaged or not supported.
absl::StatusOr<std::shared_ptr<const Tokenizer>> ReadTokenizer(const std::string& path);

// The same for the contents of such a file; the sentence does not name a path.
absl::StatusOr<std::shared_ptr<const Tokenizer>> ParseTokenizer(std::string_view json);

}  // namespace muster::trainer
