// Writes a file of tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/data/tokens/token_range.h"
#include "trainer/io/durable_file.h"
#include "trainer/text/tokenizer.h"

namespace muster::trainer {

// Writes what MapTokens (token_files.h) reads: raw little-endian numbers. The file appears complete
// or not at all. Not thread-safe.
class TokenWriter {
 public:
  // Begins a file of `type`, kUint16 or kUint32, which Commit() moves to `path`. kInvalidArgument
  // if it cannot be created there.
  static absl::StatusOr<std::unique_ptr<TokenWriter>> Create(const std::string& path,
                                                             TokenType type);

  // Appends `tokens`, all of which must fit the type. kUnavailable if they cannot be written; then
  // only the destructor may follow.
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

}  // namespace muster::trainer
