#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "launcher/flags/completion.h"

namespace muster::launcher {
namespace {

// @VALUE_FLAGS@ is filled in from the table; a line for each flag and command follows.
constexpr char kFishScript[] = R"(# fish completion for muster and torchrun.

function __muster_is_command
    set -l words (commandline -opc)
    test (count $words) -ge 2; and contains -- $words[2] $argv
end

# Whether the script is still to come.
function __muster_wants_flags
    set -l words (commandline -opc)
    if not string match -q -- '*torchrun' $words[1]
        __muster_is_command run launch; or return 1
        set -e words[1]
    end
    set -e words[1]
    set -l value_flags @VALUE_FLAGS@
    set -l is_value 0
    for word in $words
        if test $is_value = 1
            set is_value 0
        else if contains -- $word $value_flags
            set is_value 1
        else if not string match -q -- '-*' $word
            return 1
        end
    end
end

complete -c muster -n 'test (count (commandline -opc)) -eq 1' -f -a 'run launch store ps attach stop doctor gpus status top logs kv sbatch manifest replay'
complete -c muster -n '__muster_is_command store' -l port -x -d 'The port; 0 takes any free one'
complete -c muster -n '__muster_is_command store' -l host -x -d 'The address to listen at'
complete -c muster -n '__muster_is_command store' -l allow -x -d 'The only addresses that may connect'
complete -c muster -n '__muster_is_command store' -l legacy-dialect -x -a 'auto 1.x 2.1' -d 'For clients before PyTorch 2.2'
complete -c muster -n '__muster_is_command store' -l ready-fd -x -d 'A file descriptor that is told the port'
complete -c muster -n '__muster_is_command ps' -f -l json -d 'Print a JSON array'
complete -c muster -n '__muster_is_command ps' -x -s H -l hosts -d 'Ask these hosts'
complete -c muster -n '__muster_is_command ps' -r -l hostfile -d 'Ask the hosts in a file'
complete -c muster -n '__muster_is_command ps' -x -l launch-with -d 'Connect by this instead of ssh'
complete -c muster -n '__muster_is_command ps' -x -l ssh-persist -d 'Keep connections for so long'
complete -c muster -n '__muster_is_command ps' -x -l timeout -d 'Wait no longer for a host'
complete -c muster -n '__muster_is_command ps' -f -l no-ship -d 'Send this program to no host'
complete -c muster -n '__muster_is_command attach' -f -l all -d 'All that it has printed'
complete -c muster -n '__muster_is_command stop' -f -l timeout -x -d 'Wait no longer'
complete -c muster -n '__muster_is_command doctor' -l log-dir -x -a '(__fish_complete_directories)' -d 'Where logs are to go'
complete -c muster -n '__muster_is_command doctor' -l hosts -x -d 'Ask these hosts'
complete -c muster -n '__muster_is_command doctor' -l hostfile -r -F -d 'Ask the hosts of a file'
complete -c muster -n '__muster_is_command doctor' -l rdzv-endpoint -x -d 'HOST:PORT of the rendezvous'
complete -c muster -n '__muster_is_command doctor' -l token-file -r -F -d 'Its token'
complete -c muster -n '__muster_is_command doctor' -l insecure -d 'It has no token'
complete -c muster -n '__muster_is_command doctor' -l json -d 'Print a JSON object'
complete -c muster -n '__muster_is_command gpus' -f -l check -d 'Say only whether they are fit'
complete -c muster -n '__muster_is_command gpus' -f -l json -d 'Print a JSON object'
complete -c muster -n '__muster_is_command manifest' -l image -x -d 'What the pods run'
complete -c muster -n '__muster_is_command manifest' -l nodes -x -d 'Pods: N or MIN:MAX'
complete -c muster -n '__muster_is_command manifest' -l gpus -x -d 'GPUs for each pod, and as many workers'
complete -c muster -n '__muster_is_command manifest' -l token-file -r -F -d 'The token to print'
complete -c muster -n '__muster_is_command replay' -l html -r -F -d 'Write a page for a browser'
complete -c muster -n '__muster_is_command replay' -l trace -r -F -d 'Write a trace for Perfetto'
complete -c muster -n '__muster_is_command replay' -l job -x -d 'The job, where the logs are of several'
complete -c muster -n '__muster_is_command replay' -l schema -d 'Print the JSON schema of event logs'
complete -c muster -n '__muster_is_command status top logs kv' -f -l rdzv-endpoint -x -d 'HOST:PORT of the rendezvous'
complete -c muster -n '__muster_is_command status top logs kv' -f -l rdzv-id -x -d 'The job'
complete -c muster -n '__muster_is_command logs' -f -l rank -x -d 'Of these ranks'
complete -c muster -n '__muster_is_command logs' -f -s f -l follow -d 'Go on with what is printed from now on'
complete -c muster -n '__muster_is_command logs' -f -l round -x -d 'Of this round'
complete -c muster -n '__muster_is_command logs' -f -l previous -d 'Of the round before'
complete -c muster -n '__muster_is_command logs' -f -l since -x -d 'Not earlier'
complete -c muster -n '__muster_is_command logs' -f -l tail -x -d 'The last lines'
complete -c muster -n '__muster_is_command logs' -f -l stdout -d 'stdout alone'
complete -c muster -n '__muster_is_command logs' -f -l stderr -d 'stderr alone'
complete -c muster -n '__muster_is_command status' -f -l json -d 'Print a JSON array'
complete -c muster -n '__muster_is_command status' -f -l watch -d 'Again whenever something changes'
complete -c muster -n '__muster_is_command kv' -f -l timeout -x -d 'How many seconds to wait'
complete -c muster -n '__muster_is_command kv; and test (count (commandline -opc)) -eq 2' -f -a 'get set add append compare-set delete check wait count barrier'
)";

std::string Quote(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

std::string ValueOptions(const Flag& flag) {
  switch (ValueKindOf(flag)) {
    case ValueKind::kNone:
      return "";
    case ValueKind::kChoice:
      return absl::StrCat(" -x -a ", Quote(absl::StrJoin(ChoicesOf(flag), " ")));
    case ValueKind::kDirectory:
      return " -x -a '(__fish_complete_directories)'";
    case ValueKind::kFile:
      return " -r -F";
    case ValueKind::kOther:
      break;
  }
  return " -x";
}

}  // namespace

std::string FishCompletion() {
  std::vector<std::string> value_flags;
  std::string lines;
  for (const Flag& flag : RunFlagTable()) {
    if (TakesValue(flag)) {
      value_flags.emplace_back(flag.name);
      const std::string underscores = UnderscoreName(flag);
      if (!underscores.empty()) value_flags.push_back(underscores);
      for (const std::string& name : ShortNames(flag)) value_flags.push_back(name);
    }
    const bool launch_only = flag.of == Flag::Of::kLaunch;
    for (const char* command : {"muster", "torchrun"}) {
      if (launch_only && absl::string_view(command) == "torchrun") continue;
      absl::StrAppend(&lines, "complete -c ", command, " -n '__muster_wants_flags",
                      launch_only ? "; and __muster_is_command launch" : "", "' -l ",
                      flag.name.substr(2));
      for (const std::string& name : ShortNames(flag)) {
        absl::StrAppend(&lines, name.size() == 2 ? " -s " : " -o ", name.substr(1));
      }
      absl::StrAppend(&lines, ValueOptions(flag), " -d ", Quote(flag.help), "\n");
    }
  }
  return absl::StrReplaceAll(kFishScript, {{"@VALUE_FLAGS@", absl::StrJoin(value_flags, " ")}}) +
         lines;
}

}  // namespace muster::launcher
