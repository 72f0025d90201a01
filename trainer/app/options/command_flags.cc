#include "trainer/app/options/command_flags.h"

#include <algorithm>
#include <iostream>
#include <map>

#include <CLI/CLI.hpp>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include "base/text.h"

namespace muster::trainer {
namespace {

// Other programs' names for our flags, where the spelling is not close: PyTorch's own examples,
// nanoGPT, Hugging Face's Trainer, timm, Lightning.
const std::map<std::string, std::vector<absl::string_view>>& OtherNames() {
  static const std::map<std::string, std::vector<absl::string_view>> kNames = {
      {"accumulate", {"grad-accum", "gradient-accumulation-steps"}},
      {"algorithm", {"opt"}},
      {"batch-size", {"per-device-train-batch-size", "train-batch-size"}},
      {"beta1", {"adam-beta1", "betas"}},
      {"beta2", {"adam-beta2"}},
      {"checkpoint-dir", {"output-dir", "save-dir"}},
      {"checkpoint-every", {"save-every", "save-steps"}},
      {"clip", {"clip-grad", "clip-grad-norm", "grad-clip", "gradient-clip-val", "max-grad-norm"}},
      {"context", {"block-size", "seq-len", "seq-length"}},
      {"data", {"data-dir", "data-path"}},
      {"early-stop", {"patience"}},
      {"epochs", {"num-epochs", "num-train-epochs"}},
      {"eps", {"adam-epsilon"}},
      {"eval", {"evaluation"}},
      {"heads", {"n-head", "num-attention-heads", "num-heads"}},
      {"layers", {"n-layer", "num-hidden-layers", "num-layers"}},
      {"loader-threads", {"num-workers", "workers"}},
      {"lr", {"learning-rate"}},
      {"lr-gamma", {"gamma"}},
      {"lr-min", {"min-lr"}},
      {"lr-step-size", {"step-size"}},
      {"max-steps", {"max-iters"}},
      {"model", {"arch", "architecture"}},
      {"recompute", {"gradient-checkpointing"}},
      {"replicas", {"devices"}},
      {"report-every", {"log-interval", "logging-steps"}},
      {"resume", {"resume-from-checkpoint"}},
      {"vocabulary", {"vocab-size"}},
      {"warmup-steps", {"warmup", "warmup-iters"}},
      {"weight-decay", {"wd"}},
      {"width", {"embed-dim", "hidden-size", "n-embd"}},
  };
  return kNames;
}

// Without leading dashes and value, in lower case, with dashes for underscores.
std::string Plain(absl::string_view word) {
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  return absl::StrReplaceAll(absl::AsciiStrToLower(word.substr(0, word.find('='))), {{"_", "-"}});
}

}  // namespace

std::vector<std::string> FlagNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    const std::vector<std::string>& own = option->get_lnames();
    names.insert(names.end(), own.begin(), own.end());
  }
  return names;
}

std::string MeantName(absl::string_view word, const std::vector<std::string>& names) {
  const std::string plain = Plain(word);
  for (const auto& [own, others] : OtherNames()) {
    if (absl::c_linear_search(others, plain) && absl::c_linear_search(names, own)) return own;
  }
  return std::string(base::NearestWord(plain, {names.begin(), names.end()}));
}

std::string UnknownArgument(const std::string& argument, const std::vector<std::string>& names) {
  constexpr absl::string_view kWhere = " --help lists the flags";
  if (!absl::StartsWith(argument, "-")) {
    return absl::StrCat("'", argument, "' is not a flag's value;", kWhere);
  }
  const std::string meant = MeantName(argument, names);
  return absl::StrCat("there is no flag ", argument.substr(0, argument.find('=')),
                      meant.empty() ? ";" : absl::StrCat("; did you mean --", meant, "?"), kWhere);
}

namespace {

// Reports an unknown flag before a missing one, which may be the same under another name.
std::string MistakeOf(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> names = FlagNames(app);
  for (const std::string& argument : app.remaining()) {
    // If flags are passed on, an unknown one may be valid.
    const bool passed_on = app.get_allow_extras() &&
                           (!absl::StartsWith(argument, "-") || MeantName(argument, names).empty());
    if (!passed_on) return UnknownArgument(argument, names);
  }
  return absl::StrCat(error.what(), "; --help lists the flags");
}

}  // namespace

void AddCheckpointFlag(CLI::App& app, ModelSource& source, const std::string& program) {
  app.add_option("--checkpoint", source.checkpoint,
                 absl::StrCat("What ", program,
                              " wrote with --checkpoint, --export or --checkpoint-dir; of a "
                              "directory, its newest checkpoint"))
      ->type_name("FILE|DIR")
      ->required();
}

void AddHeadsFlag(CLI::App& app, ModelSource& source) {
  const FlagGroup group(app, "Options");
  group.Number("--heads", source.heads, 1, 1000,
               "Attention heads of a gpt whose file does not say");
}

absl::Status ParseCommand(CLI::App& app, int argc, const char* const* argv, std::string& help) {
  app.get_formatter()->column_width(40);
  app.set_help_flag("-h,--help", "Print this text");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    help = app.help();
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(absl::StrCat(argv[0], ": ", MistakeOf(app, error)));
  }
  return absl::OkStatus();
}

void SayWarnings(const std::string& program, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    std::cerr << absl::StrCat(program, ": warning: ", warning, "\n");
  }
}

}  // namespace muster::trainer
