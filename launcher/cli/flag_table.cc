#include "launcher/cli/flag_table.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "rendezvous/core/values/phrases.h"
#include "rendezvous/net/endpoint.h"

namespace muster::launcher {

absl::Span<const Flag> RunFlagTable() {
  static const auto* const table = [] {
    auto* const rows = new std::vector<Flag>;
    for (const FlagGroup& group : {NodeFlags(), HostFlags(), RendezvousFlags(), ProgramFlags(),
                                   FailureFlags(), OutputFlags(), OtherFlags()}) {
      for (Flag row : group.rows) {
        row.group = group.heading;
        rows->push_back(row);
      }
    }
    return rows;
  }();
  return *table;
}

std::vector<Flag> PickRunFlags(absl::Span<const absl::string_view> names) {
  std::vector<Flag> picked;
  for (const absl::string_view name : names) {
    for (Flag flag : RunFlagTable()) {
      if (flag.name != name) continue;
      flag.group = {};
      picked.push_back(flag);
    }
  }
  return picked;
}

absl::StatusOr<std::string> ReadHost(absl::string_view text) {
  return text.empty() ? std::string() : rendezvous::ParseHost(text);
}

absl::StatusOr<std::string> ReadName(const char* what, absl::string_view text) {
  std::string name(text);
  const absl::Status status = rendezvous::CheckName(what, name);
  if (status.ok()) return name;
  return absl::InvalidArgumentError(absl::StrCat("is not usable: ", status.message()));
}

absl::StatusOr<std::string> ReadLaunchWith(absl::string_view text) {
  const auto words = ParseLaunchWith(text);
  if (!words.ok()) return words.status();
  return std::string(text);
}

std::vector<std::string> SplitFilters(absl::string_view text) {
  std::vector<std::string> entries;
  std::string entry;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ',') {
      entry += text[i];
    } else if (i + 1 < text.size() && text[i + 1] == ',') {
      entry += ',';
      ++i;
    } else if (!entry.empty()) {
      entries.push_back(std::exchange(entry, {}));
    }
  }
  if (!entry.empty()) entries.push_back(std::move(entry));
  return entries;
}

// The flags that ask for something else than a run.

namespace {

using base::Shell;

constexpr Word<Shell> kShells[] = {
    {"bash", Shell::kBash}, {"zsh", Shell::kZsh}, {"fish", Shell::kFish}};

// Whatever else is said, and whatever the environment says.
Problem SetCompletion(absl::string_view value, RunFlags& flags) {
  flags.asks_for_text = true;
  return Store<ReadWord<kShells>, &RunFlags::print_completion>(value, flags);
}

template <Purpose kPurpose>
Problem Ask(absl::string_view, base::CommandArgs& args) {
  static_cast<RunFlags&>(args).options.purpose = kPurpose;
  return std::nullopt;
}

constexpr Flag kOtherFlags[] = {
    {.name = "--detach",
     .kind = Flag::Kind::kSwitch,
     .has_variable = false,
     .local_only = true,
     .ours = true,
     .help =
         "Return at once: the run goes on in the background, and what it prints goes to a file. "
         "`muster attach` shows it, and `muster stop` ends it.",
     .set = Store<ReadSwitch, &LaunchOptions::detach>},
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
     .set = Apply<SetCompletion>},
    {.name = "--help",
     .short_name = "-h",
     .kind = Flag::Kind::kText,
     .help = "Print this text.",
     .set = Store<ReadSwitch, &RunFlags::help>},
    {.name = "--version",
     .kind = Flag::Kind::kText,
     .ours = true,
     .help = "Print the version.",
     .set = Store<ReadSwitch, &RunFlags::version>},
};

}  // namespace

FlagGroup OtherFlags() {
  return {"Other", kOtherFlags};
}

}  // namespace muster::launcher
