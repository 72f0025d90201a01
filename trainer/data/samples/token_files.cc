#include "trainer/data/samples/token_files.h"

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "trainer/data/samples/data_files.h"
#include "trainer/data/samples/data_options.h"
#include "trainer/data/samples/token_windows.h"
#include "trainer/text/tokenizer.h"
#include "trainer/text/tokenizer_file.h"

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

namespace {

constexpr std::int64_t kGeneratedTextBytes = std::int64_t{256} << 10;

using Ranges = std::vector<TokenRange>;

struct Opened {
  Ranges train;
  Ranges test;  // empty: a share of `train`
  std::int64_t vocabulary = 0;
};

absl::Status Mistake(const std::string& sentence) {
  return absl::InvalidArgumentError(sentence);
}

// `tokenizer` may be null.
Ranges MakeText(const Tokenizer* tokenizer) {
  const auto text =
      std::make_shared<const std::string>(GenerateText(kGeneratedTextBytes, /*seed=*/1));
  constexpr char kSource[] = "the generated text";
  if (tokenizer != nullptr) return {EncodeText(*text, kSource, *tokenizer)};
  return {{.owner = text,
           .begin = reinterpret_cast<const std::uint8_t*>(text->data()),
           .size = static_cast<std::int64_t>(text->size()),
           .source = kSource}};
}

// The ranges that `open` returns for the training files and for the test files.
template <typename Open>
absl::StatusOr<Opened> OpenBoth(const TokenFiles& files, std::int64_t vocabulary,
                                const Open& open) {
  absl::StatusOr<Ranges> train = open(files.train);
  if (!train.ok()) return train.status();
  absl::StatusOr<Ranges> test = open(files.test);
  if (!test.ok()) return test.status();
  return Opened{*std::move(train), *std::move(test), vocabulary};
}

absl::StatusOr<TokenFiles> FindFiles(TokenSource source, const DataOptions& options) {
  const bool tokens = source == TokenSource::kTokens;
  TokenFiles files;
  if (tokens) {
    absl::StatusOr<TokenFiles> found = ListTokenFiles(options.paths);
    if (!found.ok()) return found.status();
    files = *std::move(found);
  } else {
    auto found = ListFiles(options.paths, "");
    if (!found.ok()) return found.status();
    files.train = *std::move(found);
  }
  if (options.test_paths.empty()) return files;
  auto found = ListFiles(options.test_paths, tokens ? ".bin" : "");
  if (!found.ok()) return found.status();
  files.test = *std::move(found);
  return files;
}

absl::StatusOr<Opened> OpenTokenFiles(const DataOptions& options, const Tokenizer* tokenizer) {
  // Tokens that can occur in the files; a model may have a larger vocabulary, rounded up.
  const std::int64_t known = tokenizer != nullptr ? tokenizer->vocabulary() : options.vocabulary;
  if (known == 0) {
    return Mistake("tokens need --vocabulary, how many different ones there are, or --tokenizer");
  }
  const absl::StatusOr<TokenFiles> files = FindFiles(TokenSource::kTokens, options);
  if (!files.ok()) return files.status();
  const TokenType type = options.token_type.value_or(TypeFor(known));
  return OpenBoth(*files, known, [&](const std::vector<std::string>& paths) {
    return MapTokens(paths, type, known);
  });
}

absl::StatusOr<Opened> OpenOrMake(TokenSource source, const DataOptions& options) {
  std::shared_ptr<const Tokenizer> tokenizer;
  if (!options.tokenizer.empty()) {
    auto read = ReadTokenizer(options.tokenizer);
    if (!read.ok()) return read.status();
    tokenizer = *std::move(read);
  }
  if (source == TokenSource::kTokens) return OpenTokenFiles(options, tokenizer.get());
  const std::int64_t vocabulary = tokenizer ? tokenizer->vocabulary() : kByteVocabulary;
  if (source == TokenSource::kGenerated) {
    return Opened{MakeText(tokenizer.get()), {}, vocabulary};
  }
  const absl::StatusOr<TokenFiles> files = FindFiles(source, options);
  if (!files.ok()) return files.status();
  if (!tokenizer) return OpenBoth(*files, vocabulary, MapBytes);
  return OpenBoth(*files, vocabulary, [&](const std::vector<std::string>& paths) {
    return EncodeTexts(paths, *tokenizer);
  });
}

// "read a.txt: its 100 bytes", "read 3 files: their 100 tokens".
std::string WhatWasRead(const Ranges& ranges) {
  const char* unit = ranges.front().type == TokenType::kByte ? " bytes" : " tokens";
  const std::int64_t total = TotalTokens(ranges);
  if (ranges.size() == 1) {
    return absl::StrCat("read ", ranges.front().source, ": its ", total, unit);
  }
  return absl::StrCat("read ", ranges.size(), " files: their ", total, unit);
}

absl::Status TooFew(const Ranges& ranges, const DataOptions& options, const std::string& why) {
  const bool bytes = ranges.front().type == TokenType::kByte;
  return Mistake(absl::StrCat(WhatWasRead(ranges), " are too few for windows of ", options.context,
                              bytes ? " bytes" : " tokens", why));
}

}  // namespace

absl::StatusOr<TokenSplits> OpenTokenSplits(TokenSource source, const DataOptions& options) {
  if (options.context < 1) {
    return Mistake(
        absl::StrCat("a context of ", options.context, " tokens: it must be at least 1"));
  }
  if (!(options.test_share > 0 && options.test_share < 1)) {
    return Mistake(absl::StrCat("a test share of ", options.test_share,
                                " of the text: it must be between 0 and 1"));
  }
  absl::StatusOr<Opened> opened = OpenOrMake(source, options);
  if (!opened.ok()) return opened.status();
  if (options.vocabulary != 0 && options.vocabulary < opened->vocabulary) {
    return Mistake(absl::StrCat("--vocabulary ", options.vocabulary, " is less than the ",
                                opened->vocabulary, " tokens that there are"));
  }
  const std::int64_t vocabulary = std::max(options.vocabulary, opened->vocabulary);

  const Ranges all = opened->train;
  const bool share = opened->test.empty();
  if (share) {
    const std::int64_t total = TotalTokens(all);
    const auto test = static_cast<std::int64_t>(static_cast<double>(total) * options.test_share);
    std::tie(opened->train, opened->test) = SplitAt(all, total - test);
  }
  const Ranges measured = opened->test;
  TokenSplits splits{
      TokenWindows(std::move(opened->train), options.context, vocabulary, options.seed),
      TokenWindows(std::move(opened->test), options.context, vocabulary, options.seed)};
  if (share && (splits.train.size() == 0 || splits.test.size() == 0)) {
    return TooFew(all, options,
                  absl::StrCat(" with a share of ", options.test_share, " kept for testing"));
  }
  if (splits.train.size() == 0) return TooFew(all, options, "");
  if (splits.test.size() == 0) return TooFew(measured, options, "");
  return splits;
}

namespace {

constexpr std::size_t kWords = 200;
constexpr std::size_t kFollowers = 4;
constexpr std::size_t kShortestSentence = 4;
constexpr std::size_t kSentenceLengths = 9;

struct Word {
  std::string letters;
  std::array<std::size_t, kFollowers> followers;  // words that may come next
};

// The language does not depend on the seed, so it is the same in all texts.
std::vector<Word> Language() {
  constexpr std::string_view kConsonants = "bcdfghklmnprstvw";
  constexpr std::string_view kVowels = "aeiou";
  std::mt19937_64 random(10);
  std::vector<Word> words(kWords);
  for (Word& word : words) {
    const std::size_t syllables = 1 + random() % 3;
    for (std::size_t i = 0; i < syllables; ++i) {
      word.letters += kConsonants[random() % kConsonants.size()];
      word.letters += kVowels[random() % kVowels.size()];
    }
    for (std::size_t& follower : word.followers) follower = random() % kWords;
  }
  return words;
}

char Capital(char letter) {
  return static_cast<char>(letter - 'a' + 'A');
}

}  // namespace

std::string GenerateText(std::int64_t bytes, std::uint64_t seed) {
  const std::vector<Word> words = Language();
  // Uses only the generator's own bits: standard distributions differ between libraries.
  std::mt19937_64 random(seed);
  const auto size = static_cast<std::size_t>(bytes);
  std::string text;
  while (text.size() < size) {
    const std::size_t length = kShortestSentence + random() % kSentenceLengths;
    std::size_t word = random() % kWords;
    for (std::size_t i = 0; i < length; ++i) {
      const std::size_t begin = text.size();
      text += words[word].letters;
      if (i == 0) text[begin] = Capital(text[begin]);
      if (i + 1 < length) text += ' ';
      word = words[word].followers[random() % kFollowers];
    }
    text += random() % 4 == 0 ? ".\n" : ". ";
  }
  text.resize(size);
  return text;
}

}  // namespace muster::trainer
