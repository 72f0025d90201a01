#include "launcher/flags/flag_help.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/substitute.h"
#include "launcher/flags/flag_table.h"

namespace muster::launcher {
namespace {

constexpr std::size_t kTextColumn = 34;
constexpr std::size_t kWidth = 100;

constexpr absl::string_view kUsage =
    R"(Usage: muster $0 [flags] script [script args...]
       muster $0 [flags] -m module [module args...]
       muster $0 [flags] --no-python command [command args...]
$1
Joins the job's other nodes, starts this node's workers, and restarts what fails; with --hosts,
starts all of the job's nodes.
Flags end at the script: whatever follows it is the script's.
)";

constexpr absl::string_view kLaunchNote = R"(
The same as `muster run`, for scripts written for `python -m torch.distributed.launch`: they get
--local-rank=N before their own arguments.
)";

constexpr absl::string_view kFooter = R"(
Flags may be written with underscores instead of dashes, may be abbreviated where that is
unambiguous, and may be set by environment variables: PET_NNODES for --nnodes, PET_STANDALONE=1 for
--standalone.

Exit codes: 0 all workers succeeded, 1 a worker failed (see --exit-code), 2 the command line is
wrong, 3 the rendezvous failed, 4 this machine lacks what the run needs, 128+n ended by signal n.
)";

// `text` in lines that begin at kTextColumn; the first line has `used` columns already.
void AppendWrapped(absl::string_view text, std::size_t used, std::string& out) {
  std::size_t column = used;
  if (column + 2 > kTextColumn) {
    out += '\n';
    column = 0;
  }
  out.append(kTextColumn - column, ' ');
  column = kTextColumn;
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    if (column > kTextColumn && column + 1 + word.size() > kWidth) {
      absl::StrAppend(&out, "\n", std::string(kTextColumn, ' '));
      column = kTextColumn;
    }
    if (column > kTextColumn) {
      out += ' ';
      ++column;
    }
    absl::StrAppend(&out, word);
    column += word.size();
  }
  out += '\n';
}

// What stands in brackets behind a flag's help.
std::string Ending(const Flag& flag) {
  switch (flag.kind) {
    case Flag::Kind::kSwitch:
    case Flag::Kind::kValue:
      return absl::StrCat(" [default: ", flag.default_text, "]");
    case Flag::Kind::kIgnored:
      return " [no effect; accepted because torchrun has it]";
    case Flag::Kind::kAsk:
      break;
  }
  return "";
}

void AppendFlag(const Flag& flag, std::string& out) {
  std::string names = "  ";
  for (const absl::string_view name : absl::StrSplit(flag.short_name, '|', absl::SkipEmpty())) {
    absl::StrAppend(&names, name, ", ");
  }
  absl::StrAppend(&names, flag.name);
  if (!flag.value_name.empty()) absl::StrAppend(&names, "=", flag.value_name);
  out += names;
  AppendWrapped(absl::StrCat(flag.help, Ending(flag)), names.size(), out);
}

}  // namespace

std::string FlagsHelp(absl::Span<const absl::string_view> names) {
  std::string out;
  for (const absl::string_view name : names) {
    for (const Flag& flag : RunFlagTable()) {
      if (flag.name == name) AppendFlag(flag, out);
    }
  }
  return out;
}

std::string HelpText(Dialect dialect) {
  const bool launch = dialect == Dialect::kLaunch;
  std::string out = absl::Substitute(kUsage, launch ? "launch" : "run", launch ? kLaunchNote : "");
  absl::string_view group;
  for (const Flag& flag : RunFlagTable()) {
    if (flag.of == Flag::Of::kLaunch && !launch) continue;
    if (flag.group != group) absl::StrAppend(&out, "\n", flag.group, ":\n");
    group = flag.group;
    AppendFlag(flag, out);
  }
  absl::StrAppend(&out, kFooter);
  return out;
}

}  // namespace muster::launcher
