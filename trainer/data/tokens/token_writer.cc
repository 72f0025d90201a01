#include "trainer/data/tokens/token_writer.h"

namespace muster::trainer {

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
    bytes.append(reinterpret_cast<const char*>(&token), width);  // its low bytes come first
  }
  count_ += static_cast<std::int64_t>(tokens.size());
  return file_->Append(bytes);
}

}  // namespace muster::trainer
