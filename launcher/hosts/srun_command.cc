#include "launcher/hosts/srun_command.h"

#include "absl/strings/str_cat.h"
#include "launcher/hosts/link_command.h"

namespace muster::launcher {

std::vector<std::string> SrunCommand(const SlurmStep& step, const std::string& program) {
  const std::string here = ShellQuoted(program);
  // Workers do not read what is meant for their agent: the token's line, by `read`, which takes no
  // byte beyond it, and then orders.
  const std::string script =
      absl::StrCat("exec ", kOrdersFd, "<&0 </dev/null; IFS= read -r token <&", kOrdersFd,
                   "\nexec 3<<END\n$token\nEND\ntest -x ", here, " && exec ", here,
                   " \"$@\"; command -v muster >/dev/null && exec muster \"$@\"; "
                   "echo \"there is no muster on $(hostname), neither in PATH nor as \"",
                   here, " >&2; exit 127");
  const std::string nodes = absl::StrCat(step.nodes);
  std::vector<std::string> argv = {
      "srun",
      "--quiet",
      // One Ctrl-C is passed on at once; srun would only say what runs.
      "--disable-status",
      "--overlap",
      "--nodes=" + nodes,
      "--ntasks=" + nodes,
      "--ntasks-per-node=1",
      // Nodes end one another, with time for their workers to save; the limit is for those who wait
      // in vain for a node whose agent was killed.
      "--kill-on-bad-exit=0",
      absl::StrCat("--wait=", step.end_limit.count()),
      "sh",
      "-c",
      script,
      "muster",
      step.dialect,
      "--prefix-lines",
  };
  if (step.makes_token) argv.push_back("--token-fd=3");
  argv.insert(argv.end(), step.args.begin(), step.args.end());
  return argv;
}

}  // namespace muster::launcher
