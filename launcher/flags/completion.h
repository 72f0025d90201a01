// Completion of the command line in the user's shell. The scripts are made from RunFlagTable(), so
// that a new flag is completed without further work.
#pragma once

#include <string>
#include <vector>

#include "launcher/flags/flag_table.h"
#include "launcher/flags/run_flags.h"

namespace muster::launcher {

// A script for `muster` and `torchrun`, to be sourced by the shell:
//   bash   source <(muster run --print-completion bash)
//   zsh    source <(muster run --print-completion zsh), behind compinit
//   fish   muster run --print-completion fish | source
// Completes the subcommands of `muster`; the flags of `muster run`, `muster launch` and `torchrun`
// up to the script, and the values of flags that offer a choice; from the script on, files.
std::string CompletionScript(Shell shell);

// What completes the value of a flag.
enum class ValueKind { kNone, kChoice, kDirectory, kFile, kOther };

ValueKind ValueKindOf(const Flag& flag);

// The literal words in a value name such as "N|cpu|gpu|auto": those without capitals.
std::vector<std::string> ChoicesOf(const Flag& flag);

// The name with underscores, "--rdzv_id"; empty when that is the same.
std::string UnderscoreName(const Flag& flag);

// "-n" and "-np" of "-n|-np"; empty when there is none.
std::vector<std::string> ShortNames(const Flag& flag);

// The script for each shell; CompletionScript() chooses.
std::string BashCompletion();
std::string ZshCompletion();
std::string FishCompletion();

}  // namespace muster::launcher
