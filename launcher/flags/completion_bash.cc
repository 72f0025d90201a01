#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "launcher/flags/completion.h"

namespace muster::launcher {
namespace {

// What stands between @s is filled in from the table.
constexpr char kBashScript[] = R"(# bash completion for muster and torchrun.

_muster_files() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen "$1" -- "$2")
}

# Completes $2, the value of flag $1.
_muster_value() {
  case ${1//_/-} in
@VALUES@    *) COMPREPLY=() ;;
  esac
}

_muster_flags() {
  # Either spelling finds the flag.
  COMPREPLY=($(compgen -W "$1" -- "${2//_/-}"))
}

_muster() {
  COMPREPLY=()
  # Readline breaks words at '=' and ':', which are inside one argument here.
  local -a words=()
  local i n=-1
  for ((i = 0; i <= COMP_CWORD; i++)); do
    if ((n > 0)) && [[ ${COMP_WORDS[i]} == [=:]* || ${words[n]} == -*[=:] ]]; then
      words[n]+=${COMP_WORDS[i]}
    else
      words[++n]=${COMP_WORDS[i]}
    fi
  done
  local current=${words[n]} first=1 flags="@FLAGS@"

  if [[ ${words[0]##*/} != torchrun ]]; then
    if ((n == 1)); then
      COMPREPLY=($(compgen -W "run launch store ps attach stop doctor gpus status top logs kv sbatch manifest replay --help --version" -- "$current"))
      return
    fi
    case ${words[1]} in
      run) first=2 ;;
      launch) first=2 flags="$flags @LAUNCH_FLAGS@" ;;
      store) _muster_flags "--port --host --allow --legacy-dialect --ready-fd --help" "$current"; return ;;
      ps) _muster_flags "--json --hosts --hostfile --launch-with --ssh-persist --timeout --no-ship --help" "$current"; return ;;
      attach) _muster_flags "--all --help" "$current"; return ;;
      stop) _muster_flags "--timeout --help" "$current"; return ;;
      doctor)
        if [[ $current == -* ]]; then
          _muster_flags "--hosts --hostfile --fanout --launch-with --no-ship --export --rdzv-endpoint --token-file --tls-ca --tls-cert --tls-key --insecure --log-dir --json --help" "$current"
        else
          _muster_files -d "$current"
        fi
        return ;;
      gpus) _muster_flags "--check --json --help" "$current"; return ;;
      sbatch) _muster_flags "--dry-run --help" "$current"; return ;;
      manifest) _muster_flags "--name --namespace --image --nodes --gpus --gpu-resource --cpu --memory --env --volume --secret --token-file --user --grace --wait --backoff --cluster-domain --help" "$current"; return ;;
      replay)
        if [[ $current == -* ]]; then
          _muster_flags "--html --trace --job --schema --help" "$current"
        else
          _muster_files -f "$current"
        fi
        return ;;
      status) _muster_flags "--rdzv-endpoint --rdzv-id --watch --json --help" "$current"; return ;;
      top) _muster_flags "--rdzv-endpoint --rdzv-id --token-file --token-fd --tls-ca --tls-cert --tls-key --insecure --help" "$current"; return ;;
      logs) _muster_flags "--rdzv-endpoint --rdzv-id --rank --follow --round --previous --since --tail --stdout --stderr --help" "$current"; return ;;
      kv)
        if ((n == 2)) && [[ $current != -* ]]; then
          COMPREPLY=($(compgen -W "get set add append compare-set delete check wait count barrier" -- "$current"))
        else
          _muster_flags "--rdzv-endpoint --rdzv-id --timeout --help" "$current"
        fi
        return ;;
      *) return ;;
    esac
  fi

  # Flags end at the script.
  for ((i = first; i < n; i++)); do
    case ${words[i]} in
      --) ((i + 1 < n)) || break; _muster_files -f "$current"; return ;;
      @VALUE_FLAGS@) ((i++)) ;;
      -*) ;;
      *) _muster_files -f "$current"; return ;;
    esac
  done
  if ((i > n)); then
    _muster_value "${words[n - 1]}" "$current"
  elif [[ $current == --*=* ]]; then
    _muster_value "${current%%=*}" "${current#*=}"
  elif [[ $current == -* ]]; then
    _muster_flags "$flags" "$current"
  else
    _muster_files -f "$current"
  fi
}

complete -F _muster muster torchrun
)";

// The names of a flag as a pattern of `case`.
std::string Pattern(const Flag& flag) {
  std::vector<std::string> names = ShortNames(flag);
  names.emplace_back(flag.name);
  return absl::StrJoin(names, " | ");
}

std::string ValueCase(const Flag& flag) {
  switch (ValueKindOf(flag)) {
    case ValueKind::kChoice:
      return absl::StrCat("    ", Pattern(flag), ") COMPREPLY=($(compgen -W \"",
                          absl::StrJoin(ChoicesOf(flag), " "), "\" -- \"$2\")) ;;\n");
    case ValueKind::kDirectory:
      return absl::StrCat("    ", Pattern(flag), ") _muster_files -d \"$2\" ;;\n");
    case ValueKind::kFile:
      return absl::StrCat("    ", Pattern(flag), ") _muster_files -f \"$2\" ;;\n");
    case ValueKind::kNone:
    case ValueKind::kOther:
      break;
  }
  return "";
}

}  // namespace

std::string BashCompletion() {
  std::vector<std::string> flags;
  std::vector<std::string> launch_flags;
  std::vector<std::string> value_flags;
  std::string values;
  for (const Flag& flag : RunFlagTable()) {
    (flag.of == Flag::Of::kLaunch ? launch_flags : flags).emplace_back(flag.name);
    for (const std::string& name : ShortNames(flag)) flags.push_back(name);
    absl::StrAppend(&values, ValueCase(flag));
    if (!TakesValue(flag)) continue;
    value_flags.push_back(Pattern(flag));
    const std::string underscores = UnderscoreName(flag);
    if (!underscores.empty()) value_flags.push_back(underscores);
  }
  return absl::StrReplaceAll(kBashScript, {{"@FLAGS@", absl::StrJoin(flags, " ")},
                                           {"@LAUNCH_FLAGS@", absl::StrJoin(launch_flags, " ")},
                                           {"@VALUE_FLAGS@", absl::StrJoin(value_flags, " | ")},
                                           {"@VALUES@", values}});
}

}  // namespace muster::launcher
