#include "launcher/commands/start_step.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "launcher/hosts/srun_command.h"
#include "launcher/report/exit_code.h"
#include "launcher/tree/own_program.h"
#include "rendezvous/identity/token_file.h"

namespace muster::launcher {
namespace {

// What was in standard input is nobody's: srun would give it to all nodes.
bool SetInput(const std::string& text) {
  const base::UniqueFd file(::memfd_create("muster-token", MFD_CLOEXEC));
  return file.get() >= 0 &&
         ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
         ::lseek(file.get(), 0, SEEK_SET) == 0 && ::dup2(file.get(), STDIN_FILENO) >= 0;
}

void SetEnvironment(const SlurmStep& step) {
  // Lines of all ranks come together in one place.
  ::setenv("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "[${role_name}${rank}]:", /*replace=*/0);
  for (const std::string& variable : step.environment) {
    const std::size_t equals = variable.find('=');
    if (equals == std::string::npos) continue;
    ::setenv(variable.substr(0, equals).c_str(), variable.c_str() + equals + 1, /*replace=*/1);
  }
}

}  // namespace

int StartStep(const SlurmStep& step) {
  std::vector<std::string> words = SrunCommand(step, OwnProgram());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  SetEnvironment(step);
  if (SetInput(step.makes_token ? rendezvous::Token::Random().Text() : "")) {
    ::execvp(argv[0], argv.data());
  }
  std::fprintf(stderr,
               "muster run: cannot run srun, which starts the job on the allocation's nodes: %s; "
               "MUSTER_SLURM=0 starts it on this node alone\n",
               std::strerror(errno));
  return kExitNodeFailed;
}

}  // namespace muster::launcher
