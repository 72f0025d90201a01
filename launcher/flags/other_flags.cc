// The flags that ask for something else than a run.
#include "launcher/config/words.h"
#include "launcher/flags/flag_table.h"
#include "launcher/flags/readers.h"

namespace muster::launcher {
namespace {

constexpr Word<Shell> kShells[] = {
    {"bash", Shell::kBash}, {"zsh", Shell::kZsh}, {"fish", Shell::kFish}};

template <Purpose kPurpose>
Problem Ask(absl::string_view, RunFlags& flags) {
  flags.config.purpose = kPurpose;
  return std::nullopt;
}

constexpr Flag kOtherFlags[] = {
    {.name = "--detach",
     .kind = Flag::Kind::kSwitch,
     .has_variable = false,
     .here_alone = true,
     .ours = true,
     .help =
         "Return at once: the run goes on in the background, and what it prints goes to a file. "
         "`muster attach` shows it, and `muster stop` ends it.",
     .set = Store<ReadSwitch, &LaunchConfig::detach>},
    {.name = "--dry-run",
     .kind = Flag::Kind::kAsk,
     .ours = true,
     .help = "Start nothing. Print what each worker of this node would get.",
     .set = Ask<Purpose::kDryRun>},
    {.name = "--print-config",
     .kind = Flag::Kind::kAsk,
     .ours = true,
     .help = "Start nothing. Print, as JSON, how this command line and the environment were "
             "understood.",
     .set = Ask<Purpose::kPrintConfig>},
    {.name = "--print-completion",
     .has_variable = false,
     .value_name = "bash|zsh|fish",
     .help = "Print a script for the shell to complete Muster's command lines with.",
     .default_text = "not printed",
     .set = Store<ReadWord<kShells>, &RunFlags::print_completion>},
    {.name = "--help",
     .short_name = "-h",
     .kind = Flag::Kind::kAsk,
     .help = "Print this text.",
     .set = Store<ReadSwitch, &RunFlags::help>},
    {.name = "--version",
     .kind = Flag::Kind::kAsk,
     .ours = true,
     .help = "Print the version.",
     .set = Store<ReadSwitch, &RunFlags::version>},
};

}  // namespace

FlagGroup OtherFlags() {
  return {"Other", kOtherFlags};
}

}  // namespace muster::launcher
