// Splits text into words, whose bytes are then merged into tokens.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace muster::trainer {

// The regular expression whose matches are the words. Each character belongs to a match. Both are
// implemented by hand: RE2 cannot look ahead, and std::regex does not know Unicode.
enum class WordRule {
  // 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  kGpt2,
  // (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|
  // \s*[\r\n]+|\s+(?!\S)|\s+, in one line: GPT-4's and Llama 3's
  kGpt4,
};

// Returns the rule with exactly this regular expression, or nullopt.
std::optional<WordRule> RuleOf(std::string_view regex);

// Returns the length in bytes of the first word of `text`, which must not be empty. If the text may
// go on (not `complete`) and more of it could change the word, returns 0.
std::size_t FirstWord(WordRule rule, std::string_view text, bool complete);

}  // namespace muster::trainer
