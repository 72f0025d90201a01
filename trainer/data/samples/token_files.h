// Opens files of tokens, and text files as tokens, and divides them into splits.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/data/samples/data_options.h"
#include "trainer/data/samples/token_windows.h"
#include "trainer/io/formats/files.h"
#include "trainer/text/tokenizer.h"

namespace muster::trainer {

// Maps files of tokens, raw and little-endian, as nanoGPT writes them. kInvalidArgument and one
// sentence when a file cannot be read, is not a whole number of tokens, looks like another type, or
// has a token that is not below `vocabulary` among its first 2^18.
absl::StatusOr<std::vector<TokenRange>> MapTokens(const std::vector<std::string>& paths,
                                                  TokenType type, std::int64_t vocabulary);

// Maps files as tokens of one byte each. kInvalidArgument when a file cannot be read.
absl::StatusOr<std::vector<TokenRange>> MapBytes(const std::vector<std::string>& paths);

// Encodes `text`, from `source`, into memory.
TokenRange EncodeText(std::string_view text, const std::string& source, const Tokenizer& tokenizer);

// The same for each file. kInvalidArgument when a file cannot be read.
absl::StatusOr<std::vector<TokenRange>> EncodeTexts(const std::vector<std::string>& paths,
                                                    const Tokenizer& tokenizer);

// Writes a file of tokens.

// Writes files for MapTokens: raw little-endian numbers. The file is written atomically. Not
// thread-safe.
class TokenWriter {
 public:
  // Begins a file of `type`, kUint16 or kUint32, which Commit() moves to `path`. kInvalidArgument
  // if it cannot be created there.
  static absl::StatusOr<std::unique_ptr<TokenWriter>> Create(const std::string& path,
                                                             TokenType type);

  // Appends `tokens`, all of which must fit the type. kUnavailable if they cannot be written; after
  // that only destroy this.
  absl::Status Append(const std::vector<TokenId>& tokens);

  // The number of tokens so far.
  std::int64_t count() const { return count_; }

  // Completes the file. Call it once, last. kUnavailable as above.
  absl::Status Commit() { return file_->Commit(); }

 private:
  TokenWriter(std::unique_ptr<DurableFile> file, TokenType type)
      : file_(std::move(file)), type_(type) {}

  const std::unique_ptr<DurableFile> file_;
  const TokenType type_;
  std::int64_t count_ = 0;
};

// Opens the text or the tokens that the user asks for.

// Where tokens come from.
enum class TokenSource {
  kText,       // text files, as bytes or encoded by a tokenizer
  kTokens,     // files of tokens
  kGenerated,  // 256 KiB of text, generated in memory
};

// Both splits, with the same context and vocabulary, and at least one window in each.
struct TokenSplits {
  TokenWindows train;
  TokenWindows test;
};

// Opens or generates the data. kInvalidArgument and one sentence when a file is missing, damaged,
// of another kind or too small, or when an option is out of range.
absl::StatusOr<TokenSplits> OpenTokenSplits(TokenSource source, const DataOptions& options);

// Generated text, for tests and for machines without a data set.

// Generates exactly `bytes` bytes of sentences of invented words. Only a few words can follow each
// word: a model learns spelling within a few hundred steps, and word order later. The same `bytes`
// and `seed` give the same text on every machine.
std::string GenerateText(std::int64_t bytes, std::uint64_t seed);

}  // namespace muster::trainer
