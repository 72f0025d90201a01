#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "launcher/flags/completion.h"

namespace muster::launcher {
namespace {

// @SPECS@ and @LAUNCH_SPECS@ are filled in from the table, one line for each spelling. -A ends the
// flags at the script; a spec with '!' is understood but not offered.
constexpr char kZshScript[] = R"(#compdef muster torchrun
# zsh completion for muster and torchrun.

_muster_run() {
  local -a launch_specs=()
  if [[ $1 == launch ]]; then
    launch_specs=(
@LAUNCH_SPECS@    )
  fi
  _arguments -s -S -A '-*' $launch_specs \
@SPECS@    '1:script:_files' \
    '*:argument:_files'
}

_muster() {
  if [[ $service == torchrun ]]; then
    _muster_run
    return
  fi
  if ((CURRENT == 2)); then
    local -a commands=(
      'run:start the workers of this node'
      'launch:the same with the arguments of torch.distributed.launch'
      'store:serve a store for workers'
      'ps:list the runs on this machine'
      'attach:show what a detached run prints'
      'stop:end runs on this machine'
      'doctor:say what is wrong with this machine'
      'gpus:list the GPUs of this machine'
      'sbatch:submit a job to Slurm'
      'manifest:print a job for Kubernetes'
      'replay:show what happened to a job'
      'status:show the jobs of a rendezvous'
      'top:show them on the whole terminal, as they change'
      'logs:show what the workers of a job print'
      'kv:read and write the key-value store of a job'
    )
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  ((CURRENT--))
  case $command in
    run | launch) _muster_run $command ;;
    store) _arguments '--port=[the port; 0 takes any free one]:port:' \
      '--host=[the address to listen at]:address:' \
      '--allow=[the only addresses that may connect]:addresses:' \
      '--legacy-dialect=[for clients before PyTorch 2.2]:dialect:(auto 1.x 2.1)' \
      '--ready-fd=[a file descriptor that is told the port]:descriptor:' '--help[print help]' ;;
    ps) _arguments '--json[print a JSON array]' '(-H --hosts)'{-H,--hosts}'[ask these hosts]:hosts:' \
          '--hostfile[ask the hosts in a file]:file:_files' '--launch-with[connect by this instead of ssh]:command:' \
          '--ssh-persist=[keep connections for so long]:seconds:' '--timeout=[wait no longer for a host]:seconds:' \
          '--no-ship[send this program to no host]' '--help[print help]' ;;
    attach) _arguments '--all[all that it has printed]' '--help[print help]' ;;
    stop) _arguments '--timeout=[wait no longer]:seconds:' '--help[print help]' ;;
    doctor) _arguments '--hosts=[ask these hosts]:hosts:' '--hostfile=[ask the hosts of a file]:file:_files' \
      '--rdzv-endpoint=[where the rendezvous is]:HOST\:PORT:' \
      '--token-file=[its token]:file:_files' '--insecure[it has none]' \
      '--log-dir=[where logs are to go]:directory:_files -/' \
      '--json[print a JSON object]' '--help[print help]' '*:directory for checkpoints:_files -/' ;;
    gpus) _arguments '--check[say only whether they are fit]' '--json[print a JSON object]' '--help[print help]' ;;
    replay) _arguments '--html=[write a page for a browser]:OUT:_files' \
      '--trace=[write a trace for Perfetto]:OUT:_files' '--job=[the job]:JOB:' \
      '--schema[print the JSON schema of event logs]' '--help[print help]' '*:event log:_files' ;;
    status) _arguments '--rdzv-endpoint=[where the rendezvous is]:HOST\:PORT:' \
      '--rdzv-id=[the job]:JOB:' '--watch[again whenever something changes]' '--json[print a JSON array]' \
      '--help[print help]' '1:JOB:' ;;
    top) _arguments '--rdzv-endpoint=[where the rendezvous is]:HOST\:PORT:' \
      '--rdzv-id=[the job]:JOB:' '--token-file=[its token]:file:_files' '--insecure[it has none]' \
      '--help[print help]' '1:JOB:' ;;
    logs) _arguments '--rdzv-endpoint=[where the rendezvous is]:HOST\:PORT:' '--rdzv-id=[the job]:JOB:' \
      '--rank=[of these ranks]:RANKS:' '(-f --follow)'{-f,--follow}'[go on with what is printed from now on]' \
      '--round=[of this round]:N:' '--previous[of the round before]' '--since=[not earlier]:WHEN:' \
      '--tail=[the last lines]:N:' '--stdout[stdout alone]' '--stderr[stderr alone]' '--help[print help]' '1:job:' ;;
    kv) _arguments '--rdzv-endpoint=[where the rendezvous is]:HOST\:PORT:' \
      '--rdzv-id=[the job]:JOB:' '--timeout=[how long to wait]:SECONDS:' '--help[print help]' \
      '1:command:(get set add append compare-set delete check wait count barrier)' '*:argument:' ;;
  esac
}

compdef _muster muster torchrun
)";

// `text` inside single quotes and inside the brackets or the message of a spec.
std::string Escape(absl::string_view text) {
  return absl::StrReplaceAll(
      text, {{"'", "'\\''"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}, {"`", "\\`"}});
}

// What follows the flag in its spec: nothing, or the value's name and how to complete it.
std::string ValueSpec(const Flag& flag) {
  const std::string name = absl::StrCat(":", Escape(flag.value_name), ":");
  switch (ValueKindOf(flag)) {
    case ValueKind::kNone:
      return "";
    case ValueKind::kChoice:
      return absl::StrCat(name, "(", absl::StrJoin(ChoicesOf(flag), " "), ")");
    case ValueKind::kDirectory:
      return absl::StrCat(name, "_files -/");
    case ValueKind::kFile:
      return absl::StrCat(name, "_files");
    case ValueKind::kOther:
      break;
  }
  return name;
}

// The spec of the flag under one of its names; `glue` joins a value to it: "=" or "+".
std::string Spec(const Flag& flag, absl::string_view name, absl::string_view glue) {
  return absl::StrCat("'", name, TakesValue(flag) ? glue : "", "[", Escape(flag.help), "]",
                      ValueSpec(flag), "'");
}

std::vector<std::string> Specs(const Flag& flag) {
  std::vector<std::string> specs = {Spec(flag, flag.name, "=")};
  const std::string underscores = UnderscoreName(flag);
  if (!underscores.empty()) specs.push_back(Spec(flag, absl::StrCat("!", underscores), "="));
  for (const std::string& name : ShortNames(flag)) {
    specs.push_back(Spec(flag, name, name.size() == 2 ? "+" : ""));
  }
  return specs;
}

}  // namespace

std::string ZshCompletion() {
  std::string specs;
  std::string launch_specs;
  for (const Flag& flag : RunFlagTable()) {
    for (const std::string& spec : Specs(flag)) {
      if (flag.of == Flag::Of::kLaunch) {
        absl::StrAppend(&launch_specs, "      ", spec, "\n");
      } else {
        absl::StrAppend(&specs, "    ", spec, " \\\n");
      }
    }
  }
  return absl::StrReplaceAll(kZshScript, {{"@SPECS@", specs}, {"@LAUNCH_SPECS@", launch_specs}});
}

}  // namespace muster::launcher
