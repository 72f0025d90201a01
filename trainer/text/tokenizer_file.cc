#include "trainer/text/tokenizer_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

#include "base/failure.h"

namespace muster::trainer {
namespace {

// Not base::Json, where a lookup among fifty thousand tokens takes linear time.
using nlohmann::json;

// Upper bound of token numbers: limits the memory for a damaged file.
constexpr std::uint64_t kMostTokens = std::uint64_t{1} << 24;

absl::Status Unsupported(const std::string& part) {
  return absl::InvalidArgumentError(
      absl::StrCat(part,
                   ", which is not supported: only byte-level BPE is, as GPT-2, GPT-4 and "
                   "Llama 3 have it"));
}

absl::Status Damaged(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("it is damaged: ", what));
}

// The member `name`, or null if there is none.
const json& Member(const json& object, const char* name) {
  static const json& none = *new json();
  if (!object.is_object()) return none;
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}

std::string Text(const json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

bool IsTrue(const json& value) {
  return value.is_boolean() && value.get<bool>();
}

std::string TypeOf(const json& part) {
  const std::string type = Text(Member(part, "type"));
  return type.empty() ? "of no known type" : type;
}

std::optional<TokenId> Number(const json& value) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= kMostTokens) return std::nullopt;
  return static_cast<TokenId>(value.get<std::uint64_t>());
}

absl::Status CheckByteLevel(const json& part) {
  if (IsTrue(Member(part, "add_prefix_space"))) {
    return Unsupported("its pre_tokenizer puts a space before each text (add_prefix_space)");
  }
  return absl::OkStatus();
}

// Only ByteLevel, or a Sequence of a Split by a regular expression and ByteLevel.
absl::StatusOr<WordRule> ReadPreTokenizer(const json& part) {
  if (part.is_null()) return Unsupported("it has no pre_tokenizer");
  const json alone = json::array({part});
  const json& listed = Member(part, "pretokenizers");
  const json& steps = TypeOf(part) == "Sequence" && listed.is_array() ? listed : alone;
  std::optional<WordRule> rule;
  for (const json& step : steps) {
    const bool last = &step == &steps.back();
    if (TypeOf(step) == "Split" && !last && !rule) {
      rule = RuleOf(Text(Member(Member(step, "pattern"), "Regex")));
      if (!rule) return Unsupported("its pre_tokenizer splits by an unknown regular expression");
      if (Text(Member(step, "behavior")) != "Isolated" || IsTrue(Member(step, "invert"))) {
        return Unsupported("its pre_tokenizer drops or joins what it splits");
      }
    } else if (TypeOf(step) == "ByteLevel" && last) {
      const absl::Status checked = CheckByteLevel(step);
      if (!checked.ok()) return checked;
      const json& use_regex = Member(step, "use_regex");
      const bool splits = use_regex.is_null() || IsTrue(use_regex);  // the option did not always
                                                                     // exist
      if (splits && rule) return Unsupported("its pre_tokenizer splits twice");
      if (splits) rule = WordRule::kGpt2;
    } else {
      return Unsupported(absl::StrCat("its pre_tokenizer is or has ", TypeOf(step)));
    }
  }
  if (rule) return *rule;
  return Unsupported("its pre_tokenizer does not split into words");
}

// Checks parts that must have a certain form, or be absent.
absl::Status CheckParts(const json& file) {
  const json& normalizer = Member(file, "normalizer");
  if (!normalizer.is_null()) {
    return Unsupported(absl::StrCat("its normalizer is ", TypeOf(normalizer)));
  }
  const json& decoder = Member(file, "decoder");
  if (!decoder.is_null() && TypeOf(decoder) != "ByteLevel") {
    return Unsupported(absl::StrCat("its decoder is ", TypeOf(decoder)));
  }
  const json& model = Member(file, "model");
  // Files of the first versions do not name the model.
  if (!Member(model, "type").is_null() && TypeOf(model) != "BPE") {
    return Unsupported(absl::StrCat("its model is ", TypeOf(model)));
  }
  const json& dropout = Member(model, "dropout");
  if (dropout.is_number() && dropout.get<double>() != 0) {
    return Unsupported("its model leaves out merges at random (dropout)");
  }
  for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!Text(Member(model, name)).empty()) {
      return Unsupported(absl::StrCat("its model has ", name));
    }
  }
  if (IsTrue(Member(model, "byte_fallback"))) {
    return Unsupported("its model falls back to bytes (byte_fallback)");
  }
  return absl::OkStatus();
}

// The tokens of a file, while being collected.
class Collected {
 public:
  absl::Status AddVocabulary(const json& vocabulary) {
    if (!vocabulary.is_object()) return Damaged("its model has no vocab");
    ids_.reserve(vocabulary.size());
    for (const auto& [symbols, number] : vocabulary.items()) {
      const std::optional<TokenId> id = Number(number);
      if (!id) return Damaged(absl::StrCat("token \"", symbols, "\" has no usable number"));
      ids_[symbols] = *id;
      // Tokens with a character that does not represent a byte exist for added_tokens.
      SetBytes(*id, BytesOfSymbols(symbols).value_or(symbols));
    }
    for (int byte = 0; byte < 256; ++byte) {
      const std::string symbol = SymbolOf(static_cast<std::uint8_t>(byte));
      const std::optional<TokenId> id = Find(symbol);
      if (!id) return Damaged(absl::StrCat("its vocab has no \"", symbol, "\", byte ", byte));
      bytes[static_cast<std::size_t>(byte)] = *id;
    }
    return absl::OkStatus();
  }

  // Each is "left right", or since 2024 ["left", "right"].
  absl::Status AddMerges(const json& list) {
    if (!list.is_array()) return Damaged("its model has no merges");
    merges.reserve(list.size());
    for (const json& merge : list) {
      std::string left = Text(merge);
      std::string right;
      if (const std::size_t space = left.find(' '); space != std::string::npos) {
        right = left.substr(space + 1);
        left.resize(space);
      } else if (merge.is_array() && merge.size() == 2) {
        left = Text(merge[0]);
        right = Text(merge[1]);
      }
      const auto found_left = Find(left);
      const auto found_right = Find(right);
      const auto merged = Find(left + right);
      if (!found_left || !found_right || !merged) {
        return Damaged(absl::StrCat("merge ", merges.size(), " (", left, " ", right,
                                    ") is not of tokens in its vocab"));
      }
      merges.push_back({*found_left, *found_right, *merged});
    }
    return absl::OkStatus();
  }

  absl::Status AddAddedTokens(const json& list) {
    if (list.is_null()) return absl::OkStatus();
    for (const json& each : list) {
      const std::string text = Text(Member(each, "content"));
      const std::optional<TokenId> id = Number(Member(each, "id"));
      if (text.empty() || !id) return Damaged("an added token has no content or no usable id");
      for (const char* name : {"single_word", "lstrip", "rstrip"}) {
        if (IsTrue(Member(each, name))) {
          return Unsupported(absl::StrCat("its added token ", text, " has ", name));
        }
      }
      added.push_back({text, *id});
      SetBytes(*id, text);
    }
    return absl::OkStatus();
  }

  absl::flat_hash_map<std::string, TokenId> WholeWords() const {
    absl::flat_hash_map<std::string, TokenId> words;
    for (const auto& [symbols, id] : ids_) {
      if (const auto word = BytesOfSymbols(symbols)) words[*word] = id;
    }
    return words;
  }

  std::array<TokenId, 256> bytes{};
  std::vector<TokenMerge> merges;
  std::vector<AddedToken> added;
  std::vector<std::string> bytes_of;

 private:
  std::optional<TokenId> Find(const std::string& symbols) const {
    const auto found = ids_.find(symbols);
    if (found == ids_.end()) return std::nullopt;
    return found->second;
  }

  void SetBytes(TokenId id, std::string text) {
    if (id >= bytes_of.size()) bytes_of.resize(id + 1);
    bytes_of[id] = std::move(text);
  }

  absl::flat_hash_map<std::string, TokenId> ids_;  // the model's, by their symbols
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Tokenizer>> ParseTokenizer(std::string_view text) {
  const json file = json::parse(text, /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!file.is_object() || !Member(file, "model").is_object()) {
    return absl::InvalidArgumentError("it is not a tokenizer.json: no JSON with a model in it");
  }
  absl::Status status = CheckParts(file);
  if (!status.ok()) return status;
  const absl::StatusOr<WordRule> rule = ReadPreTokenizer(Member(file, "pre_tokenizer"));
  if (!rule.ok()) return rule.status();
  const json& model = Member(file, "model");
  Collected tokens;
  status = tokens.AddVocabulary(Member(model, "vocab"));
  if (status.ok()) status = tokens.AddMerges(Member(model, "merges"));
  if (status.ok()) status = tokens.AddAddedTokens(Member(file, "added_tokens"));
  if (!status.ok()) return status;
  absl::flat_hash_map<std::string, TokenId> whole_words;
  if (IsTrue(Member(model, "ignore_merges"))) whole_words = tokens.WholeWords();
  return std::make_shared<const Tokenizer>(
      *rule, BytePairs(tokens.bytes, tokens.merges, std::move(whole_words)),
      AddedTokens(std::move(tokens.added)), std::move(tokens.bytes_of));
}

absl::StatusOr<std::shared_ptr<const Tokenizer>> ReadTokenizer(const std::string& path) {
  const auto failure = [&](absl::string_view why) {
    return base::Failure(absl::StatusCode::kInvalidArgument, "read tokenizer", path, why);
  };
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  // An empty file sets failbit of `text`; a directory's error is found here as well.
  if (!file || !(text << file.rdbuf())) {
    return failure(errno != 0 ? base::SystemCause() : std::string("it is empty"));
  }
  auto tokenizer = ParseTokenizer(text.view());
  if (!tokenizer.ok()) return failure(tokenizer.status().message());
  return tokenizer;
}

namespace {

constexpr int kNoByte = -1;
// Bytes that are not visible characters of Latin-1 use the characters from here on.
constexpr int kFirstStandIn = 256;
constexpr int kStandIns = 68;

struct Symbols {
  std::array<int, 256> of_byte;
  std::array<int, kFirstStandIn + kStandIns> to_byte;
};

constexpr Symbols MakeSymbols() {
  Symbols symbols{};
  for (int& byte : symbols.to_byte) byte = kNoByte;
  int next = kFirstStandIn;
  for (int byte = 0; byte < 256; ++byte) {
    const bool visible =
        (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    const int symbol = visible ? byte : next++;
    symbols.of_byte[static_cast<std::size_t>(byte)] = symbol;
    symbols.to_byte[static_cast<std::size_t>(symbol)] = byte;
  }
  return symbols;
}

constexpr Symbols kSymbols = MakeSymbols();

}  // namespace

std::string SymbolOf(std::uint8_t byte) {
  const int symbol = kSymbols.of_byte[byte];
  if (symbol < 0x80) return {static_cast<char>(symbol)};
  return {static_cast<char>(0xc0 | symbol >> 6), static_cast<char>(0x80 | (symbol & 0x3f))};
}

std::optional<std::string> BytesOfSymbols(std::string_view symbols) {
  std::string bytes;
  for (std::size_t at = 0; at < symbols.size(); ++at) {
    std::size_t symbol = static_cast<unsigned char>(symbols[at]);
    if (symbol >= 0x80) {
      // All symbols are below U+0144: two bytes of UTF-8.
      if (at + 1 == symbols.size() || (symbol & 0xe0) != 0xc0) return std::nullopt;
      symbol = (symbol & 0x1f) << 6 | (static_cast<unsigned char>(symbols[++at]) & 0x3f);
    }
    if (symbol >= kSymbols.to_byte.size() || kSymbols.to_byte[symbol] == kNoByte) {
      return std::nullopt;
    }
    bytes += static_cast<char>(kSymbols.to_byte[symbol]);
  }
  return bytes;
}

}  // namespace muster::trainer
