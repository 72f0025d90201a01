// Shell completion. The scripts are generated from the rows, so new commands and flags are
// completed automatically.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "base/cli/command.h"

namespace muster::base {

enum class Shell { kBash, kZsh, kFish };

// A script for `muster` and `torchrun`, which is `muster run`, to be sourced by the shell:
//   bash   source <(muster run --print-completion bash)
//   zsh    source <(muster run --print-completion zsh), after compinit
//   fish   muster run --print-completion fish | source
// Completes commands, their verbs and flags, and values of flags with a choice; and files from the
// place of a script's name on.
std::string CompletionScript(Shell shell, absl::Span<const Command> commands);

// The literal words in a value name such as "N|cpu|gpu|auto": those without capitals.
std::vector<std::string> ChoicesOf(const Flag& flag);

}  // namespace muster::base
