#include "trainer/app/commands/command_line.h"

#include <CLI/CLI.hpp>

#include <iostream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "trainer/app/options/flag_group.h"

namespace muster::trainer {

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

absl::StatusOr<std::string> ParseCommand(CLI::App& app, int argc, const char* const* argv) {
  app.get_formatter()->column_width(40);
  app.set_help_flag("-h,--help", "Print this text");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return app.help();
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(argv[0], ": ", error.what(), "; --help lists the flags"));
  }
  return std::string();
}

void SayWarnings(const std::string& program, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    std::cerr << absl::StrCat(program, ": warning: ", warning, "\n");
  }
}

}  // namespace muster::trainer
