#include "trainer/app/generate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>
#include <CLI/CLI.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "trainer/app/checkpoint_model.h"
#include "trainer/app/options/command_flags.h"
#include "trainer/models/model.h"
#include "trainer/runtime/process_setup.h"
#include "trainer/text/tokenizer.h"
#include "trainer/text/tokenizer_file.h"

namespace muster::trainer {
namespace {

constexpr std::size_t kManageable = 200'000'000;  // bytes of parameters

struct GenerateOptions {
  ModelSource source{.wanted = WantedModel::kText};
  std::string prompt = "\n";
  std::int64_t tokens = 256;
  SamplingOptions sampling;
  std::string tokenizer;
  int threads = 0;
  std::string help;
};

absl::StatusOr<GenerateOptions> ParseGenerate(int argc, const char* const* argv,
                                              const std::string& program) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  GenerateOptions options;
  CLI::App app(absl::StrCat("Continues a text with a GPT that ", program, " has trained."),
               absl::StrCat(program, " generate"));
  AddCheckpointFlag(app, options.source, program);
  const FlagGroup group(app, "Options");
  group.Text("--prompt", options.prompt, "The text to continue")->default_str("a line break");
  group.Number("--tokens", options.tokens, std::int64_t{1}, kMost,
               "How many to add; a token is a byte unless there is a tokenizer");
  group.Number("--temperature", options.sampling.temperature, 0.0, 1e6,
               "0: always the likeliest token; 1: as likely as the model says; above: bolder");
  group.Number("--top-k", options.sampling.top_k, std::int64_t{0}, kMost,
               "Draw from this many of the likeliest tokens only; 0: from all");
  group.Number("--seed", options.sampling.seed, std::uint64_t{0},
               std::numeric_limits<std::uint64_t>::max(),
               "Random seed: the same seed gives the same text");
  group.Number("--threads", options.threads, 0, 4096,
               "0: OMP_NUM_THREADS, or one for a model of less than 200 MB, or all processors");
  AddHeadsFlag(app, options.source);
  group.Add(app.add_option("--tokenizer", options.tokenizer,
                           "The tokenizer.json that the text was encoded with")
                ->type_name("PATH")
                ->default_str("that of the training"));
  const absl::Status parsed = ParseCommand(app, argc, argv, options.help);
  if (!parsed.ok()) return parsed;
  if (options.help.empty() && options.prompt.empty()) {
    return absl::InvalidArgumentError(
        "generate: --prompt is empty, and a text needs a first character to be continued");
  }
  return options;
}

// The scores of the token after `window`.
std::vector<double> NextScores(Model& model, const std::vector<std::int64_t>& window,
                               const at::Device& device) {
  const at::Tensor all = model.Forward(at::tensor(window, at::kLong).unsqueeze(0).to(device));
  const at::Tensor last = all.select(0, 0).select(0, -1).to(at::kCPU, at::kDouble).contiguous();
  const auto* first = last.data_ptr<double>();
  return std::vector<double>(first, first + last.numel());
}

absl::Status WriteText(const std::string& text, std::ostream& out) {
  if (text.empty() || (out << text << std::flush)) return absl::OkStatus();
  return absl::UnavailableError("generate: the text cannot be written to the standard output");
}

// Converts text to the model's tokens and back: a tokenizer's, or bytes.
class Alphabet {
 public:
  explicit Alphabet(std::shared_ptr<const Tokenizer> tokenizer)
      : tokenizer_(std::move(tokenizer)) {}

  std::vector<std::int64_t> TokensOf(const std::string& text) const {
    std::vector<std::int64_t> tokens;
    if (tokenizer_ == nullptr) {
      for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
    } else {
      for (const TokenId token : Encode(*tokenizer_, text)) tokens.push_back(token);
    }
    return tokens;
  }
  // Empty for numbers without a token: a model may have a larger vocabulary, rounded up.
  std::string BytesOf(std::size_t token) const {
    if (tokenizer_ == nullptr) return std::string(1, static_cast<char>(token));
    if (static_cast<std::int64_t>(token) >= tokenizer_->vocabulary()) return "";
    return std::string(tokenizer_->BytesOf(static_cast<TokenId>(token)));
  }

 private:
  const std::shared_ptr<const Tokenizer> tokenizer_;  // null: bytes
};

// The alphabet for a model with this vocabulary.
absl::StatusOr<Alphabet> OpenAlphabet(const std::string& tokenizer, std::int64_t vocabulary) {
  if (tokenizer.empty()) {
    if (vocabulary == kByteVocabulary) return Alphabet(nullptr);
    return absl::InvalidArgumentError(absl::StrCat(
        "generate: the model knows ", vocabulary,
        " tokens, which are not bytes; give the --tokenizer that its text was encoded with"));
  }
  auto read = ReadTokenizer(tokenizer);
  if (!read.ok()) return read.status();
  if ((*read)->vocabulary() > vocabulary) {
    return absl::InvalidArgumentError(
        absl::StrCat("generate: tokenizer ", tokenizer, " has ", (*read)->vocabulary(),
                     " tokens, and the model knows ", vocabulary,
                     "; give the --tokenizer that its text was encoded with"));
  }
  return Alphabet(*std::move(read));
}

// Writes the prompt and its continuation. Recomputes the whole window for each token: once the text
// exceeds the context, every token's position changes with each step, so nothing could be cached.
absl::Status Continue(const GenerateOptions& options, Model& model, const Alphabet& alphabet,
                      std::int64_t context, const at::Device& device, std::ostream& out) {
  const at::NoGradGuard no_grad;
  TokenSampler sampler(options.sampling);
  Utf8Assembler characters;
  std::vector<std::int64_t> window;  // the end of the text, up to the model's context
  const auto add = [&](std::int64_t token) {
    window.push_back(token);
    if (static_cast<std::int64_t>(window.size()) > context) window.erase(window.begin());
  };
  for (const std::int64_t token : alphabet.TokensOf(options.prompt)) add(token);
  absl::Status status = WriteText(options.prompt, out);
  for (std::int64_t i = 0; i < options.tokens && status.ok(); ++i) {
    const auto next = sampler.Next(NextScores(model, window, device));
    if (!next) {
      return absl::InvalidArgumentError(
          absl::StrCat("generate: the model of ", options.source.checkpoint,
                       " computes scores that are not numbers: its training diverged"));
    }
    add(static_cast<std::int64_t>(*next));
    std::string text;
    for (const char byte : alphabet.BytesOf(*next)) text += characters.Add(byte);
    status = WriteText(text, out);
  }
  if (status.ok()) status = WriteText(characters.Finish() + "\n", out);
  return status;
}

// Threads synchronize dozens of times per token, and stall when one has no processor: two were 30
// times as slow as one next to another job, so a small enough model gets one.
int ThreadsFor(const GenerateOptions& options, const Model& model) {
  if (options.threads > 0) return options.threads;
  if (std::getenv("OMP_NUM_THREADS") != nullptr) return DefaultThreads(1);
  std::size_t bytes = 0;
  for (const NamedTensor& parameter : model.Parameters()) bytes += parameter.tensor.nbytes();
  return bytes < kManageable ? 1 : DefaultThreads(1);
}

}  // namespace

absl::StatusOr<int> RunGenerate(int argc, const char* const* argv, const Registry& registry,
                                std::ostream& out) {
  const absl::StatusOr<GenerateOptions> options = ParseGenerate(argc, argv, registry.program);
  if (!options.ok()) return options.status();
  if (!options->help.empty()) {
    out << options->help;
    return 0;
  }
  // If the reader goes away, the process ends like any other filter.
  std::signal(SIGPIPE, SIG_DFL);
  SetThreads(1);  // until the model's size is known

  const auto checkpoint = ModelFromCheckpoint(options->source, registry);
  if (!checkpoint.ok()) return checkpoint.status();
  SayWarnings(registry.program, checkpoint->warnings);
  // Reads no data.
  std::vector<std::string> given = {"--dataset=generated"};
  if (!options->tokenizer.empty()) given.push_back("--tokenizer=" + options->tokenizer);
  const absl::StatusOr<Options> trained = OptionsOf(*checkpoint, given, registry);
  if (!trained.ok()) return trained.status();
  const auto alphabet = OpenAlphabet(trained->data.tokenizer, trained->shape.classes);
  if (!alphabet.ok()) return alphabet.status();
  const at::Device device = PickDevice();
  const auto model = MakeEvaluationModel(*trained, device);
  if (!model.ok()) return model.status();
  absl::Status status = LoadParameters(*checkpoint, **model);
  if (!status.ok()) return status;
  SetThreads(ThreadsFor(*options, **model));

  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  status = Continue(*options, **model, *alphabet, trained->shape.context, device, out);
  if (!status.ok()) return status;
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  std::cerr << absl::StrFormat("%s: %d tokens in %.1f s, %.0f tokens/s on %s\n", registry.program,
                               options->tokens, seconds,
                               static_cast<double>(options->tokens) / seconds, device.str());
  return 0;
}

TokenSampler::TokenSampler(const SamplingOptions& options)
    : options_(options), random_(options.seed) {}

std::optional<std::size_t> TokenSampler::Next(const std::vector<double>& scores) {
  for (const double score : scores) {
    if (std::isnan(score)) return std::nullopt;
  }
  const auto highest = std::max_element(scores.begin(), scores.end());
  if (!std::isfinite(*highest)) return std::nullopt;
  if (options_.temperature == 0) return static_cast<std::size_t>(highest - scores.begin());

  std::vector<std::size_t> tokens(scores.size());
  std::iota(tokens.begin(), tokens.end(), std::size_t{0});
  const auto wanted = static_cast<std::size_t>(options_.top_k);
  if (wanted > 0 && wanted < tokens.size()) {
    std::stable_sort(tokens.begin(), tokens.end(),
                     [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
    tokens.resize(wanted);
  }
  // Cumulative unnormalized probabilities.
  std::vector<double> sums;
  double sum = 0;
  for (const std::size_t token : tokens) {
    sum += std::exp((scores[token] - *highest) / options_.temperature);
    sums.push_back(sum);
  }
  // Not std::discrete_distribution, whose draws differ between libraries.
  const double share = static_cast<double>(random_() >> 11U) * 0x1p-53;  // [0, 1)
  const auto found = std::upper_bound(sums.begin(), sums.end(), share * sum);
  // Rounding may make the product equal to the sum.
  return found == sums.end() ? tokens.back()
                             : tokens[static_cast<std::size_t>(found - sums.begin())];
}

namespace {

// The length of the character that begins with `byte`; 1 if none does.
std::size_t CharacterLength(unsigned char byte) {
  if (byte >= 0xC2 && byte <= 0xDF) return 2;
  if (byte >= 0xE0 && byte <= 0xEF) return 3;
  if (byte >= 0xF0 && byte <= 0xF4) return 4;
  return 1;
}

bool ContinuesCharacter(unsigned char byte) {
  return byte >= 0x80 && byte <= 0xBF;
}

}  // namespace

std::string Utf8Assembler::Add(char byte) {
  const auto bits = static_cast<unsigned char>(byte);
  std::string broken;
  if (!held_.empty() && !ContinuesCharacter(bits)) broken = Finish();
  if (held_.empty()) length_ = CharacterLength(bits);
  held_ += byte;
  return held_.size() < length_ ? broken : broken + Finish();
}

std::string Utf8Assembler::Finish() {
  return std::exchange(held_, {});
}

}  // namespace muster::trainer
