#include "launcher/commands/commands.h"

namespace muster::launcher {

std::vector<base::Command> Commands() {
  return {RunCommand(),   LaunchCommand(), PsCommand(),       AttachCommand(),
          StopCommand(),  DoctorCommand(), GpusCommand(),     StatusCommand(),
          TopCommand(),   LogsCommand(),   ReplayCommand(),   KvCommand(),
          StoreCommand(), SbatchCommand(), ManifestCommand(), TokenCommand()};
}

}  // namespace muster::launcher
