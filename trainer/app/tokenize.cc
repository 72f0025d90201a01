#include "trainer/app/commands.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "base/failure.h"
#include "trainer/app/options/command_flags.h"
#include "trainer/data/samples/token_files.h"
#include "trainer/io/formats/files.h"
#include "trainer/text/tokenizer.h"
#include "trainer/text/tokenizer_file.h"
#include "trainer/worker/step_log.h"

namespace muster::trainer {
namespace {

// What is read and encoded at a time.
constexpr std::size_t kReadPiece = std::size_t{1} << 20;
// How often the length of an endless input is said.
constexpr std::int64_t kUnknownTotalStep = std::int64_t{256} << 20;

struct TokenizeOptions {
  std::string tokenizer;
  std::string output;
  std::string end_with;  // empty: nothing
  std::optional<TokenType> type;
  std::vector<std::string> files;
  std::string help;
};

absl::StatusOr<TokenizeOptions> ParseTokenize(int argc, const char* const* argv) {
  TokenizeOptions options;
  CLI::App app(
      "Turns text into a file of tokens, which --dataset tokens reads: numbers of 16 or 32 bits, "
      "little-endian, and nothing else.",
      "muster-train tokenize");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_option("--tokenizer", options.tokenizer, "A tokenizer.json (byte-level BPE)")
      ->required()
      ->type_name("PATH");
  app.add_option("--output", options.output, "The file to write")->required()->type_name("PATH");
  const std::map<std::string, std::optional<TokenType>> types = {
      {"auto", std::nullopt}, {"uint16", TokenType::kUint16}, {"uint32", TokenType::kUint32}};
  app.add_option_function<std::string>(
         "--token-type", [&](const std::string& name) { options.type = types.at(name); },
         "How tokens are written; auto: uint16 if the vocabulary allows it")
      ->check(CLI::IsMember({"auto", "uint16", "uint32"}).description(""))
      ->type_name("auto|uint16|uint32")
      ->default_str("auto");
  app.add_option("--end-with", options.end_with,
                 "An added token of the tokenizer that is put behind each file, such as "
                 "'<|endoftext|>'")
      ->type_name("TOKEN")
      ->default_str("none");
  app.add_option("FILE", options.files, "The texts, in this order; - is the standard input")
      ->required()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("");
  const absl::Status parsed = ParseCommand(app, argc, argv, options.help);
  if (!parsed.ok()) return parsed;
  return options;
}

// The length of all files together; 0 when that is not known beforehand.
std::int64_t TotalBytes(const std::vector<std::string>& files) {
  std::int64_t total = 0;
  for (const std::string& file : files) {
    std::error_code error;
    if (file == "-" || !std::filesystem::is_regular_file(file, error)) return 0;
    const auto size = std::filesystem::file_size(file, error);
    if (error) return 0;
    total += static_cast<std::int64_t>(size);
  }
  return total;
}

// Says how far it is: often on a terminal, else ten times in all.
class Advance {
 public:
  Advance(std::int64_t total, std::ostream& out, bool terminal)
      : total_(total),
        step_(std::max<std::int64_t>(
            1, total == 0 ? kUnknownTotalStep : total / (terminal ? 1000 : 10))),
        out_(out),
        terminal_(terminal),
        start_(std::chrono::steady_clock::now()) {}

  void Add(std::size_t bytes) {
    done_ += static_cast<std::int64_t>(bytes);
    if (done_ / step_ == shown_ || done_ == total_) return;
    shown_ = done_ / step_;
    std::string line = absl::StrFormat("%.1f MB", static_cast<double>(done_) / 1e6);
    if (total_ > 0) {
      const double left = static_cast<double>(total_ - done_) / bytes_per_second();
      line = absl::StrFormat("%3d %%, %s of %.1f MB, %s left", done_ * 100 / total_, line,
                             static_cast<double>(total_) / 1e6, FormatSeconds(left));
    }
    out_ << (terminal_ ? "\r" : "") << line << (terminal_ ? "\x1b[K" : "\n") << std::flush;
  }

  // Leaves nothing of the line that changes.
  void End() {
    if (terminal_ && shown_ > 0) out_ << "\r\x1b[K";
  }

  std::int64_t done() const { return done_; }
  double bytes_per_second() const {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
    return static_cast<double>(done_) / std::max(spent.count(), 1e-9);
  }

 private:
  const std::int64_t total_;
  const std::int64_t step_;
  std::ostream& out_;
  const bool terminal_;
  const std::chrono::steady_clock::time_point start_;
  std::int64_t done_ = 0;
  std::int64_t shown_ = 0;  // steps
};

absl::Status EncodeStream(std::istream& text, const std::string& name, TextEncoder& encoder,
                          TokenWriter& writer, Advance& advance) {
  std::vector<char> piece(kReadPiece);
  std::vector<TokenId> tokens;
  errno = 0;
  while (text.read(piece.data(), static_cast<std::streamsize>(piece.size())) || text.gcount() > 0) {
    const auto size = static_cast<std::size_t>(text.gcount());
    tokens.clear();
    encoder.Add({piece.data(), size}, &tokens);
    const absl::Status written = writer.Append(tokens);
    if (!written.ok()) return written;
    advance.Add(size);
  }
  // The standard input's errors are known to C alone.
  if (text.bad() || (&text == &std::cin && std::ferror(stdin) != 0)) {
    return base::SystemFailure(absl::StatusCode::kInvalidArgument, "read", name);
  }
  tokens.clear();
  encoder.Finish(&tokens);
  return writer.Append(tokens);
}

// kInvalidArgument when the output would take the place of something that is read.
absl::Status CheckApart(const TokenizeOptions& options) {
  std::vector<std::string> inputs = options.files;
  inputs.push_back(options.tokenizer);
  for (const std::string& input : inputs) {
    if (!IsSameFile(options.output, input)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "tokenize: --output ", options.output, " would overwrite ", input, "; name another file"));
  }
  return absl::OkStatus();
}

absl::Status EncodeFiles(const TokenizeOptions& options, std::istream& in,
                         const Tokenizer& tokenizer, std::optional<TokenId> end,
                         TokenWriter& writer, Advance& advance) {
  TextEncoder encoder(tokenizer);
  for (const std::string& name : options.files) {
    std::ifstream file;
    if (name != "-") {
      errno = 0;
      file.open(name, std::ios::binary);
      if (!file) return base::SystemFailure(absl::StatusCode::kInvalidArgument, "read", name);
    }
    absl::Status status = EncodeStream(name == "-" ? in : file, name, encoder, writer, advance);
    if (status.ok() && end) status = writer.Append({*end});
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> Tokenize(int argc, const char* const* argv, std::istream& in, std::ostream& out,
                             bool terminal) {
  const absl::StatusOr<TokenizeOptions> options = ParseTokenize(argc, argv);
  if (!options.ok()) return options.status();
  if (!options->help.empty()) {
    out << options->help;
    return 0;
  }
  const auto tokenizer = ReadTokenizer(options->tokenizer);
  if (!tokenizer.ok()) return tokenizer.status();
  const std::int64_t vocabulary = (*tokenizer)->vocabulary();
  const TokenType type = options->type.value_or(TypeFor(vocabulary));
  if (type == TokenType::kUint16 && TypeFor(vocabulary) != type) {
    return absl::InvalidArgumentError(absl::StrCat("tokenize: --token-type uint16 cannot hold the ",
                                                   vocabulary, " tokens of ", options->tokenizer));
  }
  std::optional<TokenId> end;
  if (!options->end_with.empty()) {
    end = (*tokenizer)->FindAdded(options->end_with);
    if (!end) {
      return absl::InvalidArgumentError(absl::StrCat("tokenize: --end-with ", options->end_with,
                                                     ": ", options->tokenizer,
                                                     " has no such added token"));
    }
  }
  const absl::Status apart = CheckApart(*options);
  if (!apart.ok()) return apart;
  std::ostream& said = IsStdout(options->output) ? std::cerr : out;
  const auto writer = TokenWriter::Create(options->output, type);
  if (!writer.ok()) return writer.status();
  Advance advance(TotalBytes(options->files), said, terminal);
  absl::Status status = EncodeFiles(*options, in, **tokenizer, end, **writer, advance);
  advance.End();
  const double speed = advance.bytes_per_second();
  if (status.ok()) status = (*writer)->Commit();
  if (!status.ok()) return status;
  const std::int64_t tokens = (*writer)->count();
  said << absl::StrFormat(
      "%s: %d %s tokens of a vocabulary of %d, from %d bytes: %.2f bytes a "
      "token, %.1f MB/s\n",
      options->output, tokens, NameOf(type), vocabulary, advance.done(),
      static_cast<double>(advance.done()) / static_cast<double>(std::max<std::int64_t>(tokens, 1)),
      speed / 1e6);
  return 0;
}

}  // namespace muster::trainer
