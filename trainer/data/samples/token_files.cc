#include "trainer/data/samples/token_files.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "trainer/data/samples/data_files.h"
#include "trainer/data/samples/token_windows.h"
#include "trainer/text/tokenizer.h"

namespace muster::trainer {
namespace {

// How much of a file is checked before training: enough to detect another kind of file without
// reading a terabyte. Every token is checked again when it is read.
constexpr std::int64_t kLookedAt = std::int64_t{1} << 18;

// The size of text encoded at a time.
constexpr std::size_t kTextPiece = std::size_t{1} << 20;

absl::StatusOr<TokenRange> MapFile(const std::string& path, TokenType type) {
  const absl::StatusOr<std::shared_ptr<const MappedFile>> file = MappedFile::Open(path);
  if (!file.ok()) return file.status();
  const std::int64_t size = (*file)->size();
  if (size % BytesOf(type) != 0) {
    return Unreadable(path,
                      absl::StrCat(size, " bytes are not a whole number of ", NameOf(type),
                                   " tokens; files of tokens have no header and nothing else"));
  }
  return TokenRange{.owner = *file,
                    .begin = (*file)->bytes(),
                    .size = size / BytesOf(type),
                    .type = type,
                    .source = path};
}

// Tokens in memory, laid out as in a file of `Token`.
template <typename Token>
TokenRange EncodeAs(TokenType type, std::string_view text, const std::string& source,
                    const Tokenizer& tokenizer) {
  const auto tokens = std::make_shared<std::vector<Token>>();
  std::vector<TokenId> some;
  const auto keep = [&] {
    for (const TokenId token : some) tokens->push_back(static_cast<Token>(token));
    some.clear();
  };
  TextEncoder encoder(tokenizer);
  for (std::size_t at = 0; at < text.size(); at += kTextPiece) {
    encoder.Add(text.substr(at, kTextPiece), &some);
    keep();
  }
  encoder.Finish(&some);
  keep();
  return {.owner = tokens,
          .begin = reinterpret_cast<const std::uint8_t*>(tokens->data()),
          .size = static_cast<std::int64_t>(tokens->size()),
          .type = type,
          .source = source};
}

// The range that `open` returns for each path, or its first error.
template <typename Open>
absl::StatusOr<std::vector<TokenRange>> OpenEach(const std::vector<std::string>& paths,
                                                 const Open& open) {
  std::vector<TokenRange> ranges;
  for (const std::string& path : paths) {
    absl::StatusOr<TokenRange> range = open(path);
    if (!range.ok()) return range.status();
    ranges.push_back(*std::move(range));
  }
  return ranges;
}

}  // namespace

absl::StatusOr<std::vector<TokenRange>> MapTokens(const std::vector<std::string>& paths,
                                                  TokenType type, std::int64_t vocabulary) {
  return OpenEach(paths, [&](const std::string& path) -> absl::StatusOr<TokenRange> {
    absl::StatusOr<TokenRange> range = MapFile(path, type);
    if (!range.ok()) return range;
    const TokenRange first = range->Part(0, std::min(range->size, kLookedAt));
    if (LooksLikeUint32(first)) {
      return Unreadable(path, "every other token is 0: it looks like --token-type uint32");
    }
    if (const auto foreign = ForeignToken(first, vocabulary)) {
      return absl::InvalidArgumentError(*foreign);
    }
    return range;
  });
}

absl::StatusOr<std::vector<TokenRange>> MapBytes(const std::vector<std::string>& paths) {
  return OpenEach(paths, [](const std::string& path) { return MapFile(path, TokenType::kByte); });
}

TokenRange EncodeText(std::string_view text, const std::string& source,
                      const Tokenizer& tokenizer) {
  const TokenType type = TypeFor(tokenizer.vocabulary());
  return type == TokenType::kUint16 ? EncodeAs<std::uint16_t>(type, text, source, tokenizer)
                                    : EncodeAs<std::uint32_t>(type, text, source, tokenizer);
}

absl::StatusOr<std::vector<TokenRange>> EncodeTexts(const std::vector<std::string>& paths,
                                                    const Tokenizer& tokenizer) {
  return OpenEach(paths, [&](const std::string& path) -> absl::StatusOr<TokenRange> {
    const absl::StatusOr<std::shared_ptr<const MappedFile>> file = MappedFile::Open(path);
    if (!file.ok()) return file.status();
    return EncodeText({reinterpret_cast<const char*>((*file)->bytes()),
                       static_cast<std::size_t>((*file)->size())},
                      path, tokenizer);
  });
}

absl::StatusOr<std::unique_ptr<TokenWriter>> TokenWriter::Create(const std::string& path,
                                                                 TokenType type) {
  absl::StatusOr<std::unique_ptr<DurableFile>> file = DurableFile::Create(path);
  if (!file.ok()) return file.status();
  return std::unique_ptr<TokenWriter>(new TokenWriter(*std::move(file), type));
}

absl::Status TokenWriter::Append(const std::vector<TokenId>& tokens) {
  const auto width = static_cast<std::size_t>(BytesOf(type_));
  std::string bytes;
  bytes.reserve(tokens.size() * width);
  for (const TokenId token : tokens) {
    bytes.append(reinterpret_cast<const char*>(&token), width);  // the low bytes first
  }
  count_ += static_cast<std::int64_t>(tokens.size());
  return file_->Append(bytes);
}

}  // namespace muster::trainer
