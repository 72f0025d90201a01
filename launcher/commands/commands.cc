#include "launcher/commands/commands.h"

#include "launcher/commands/attach.h"
#include "launcher/commands/doctor.h"
#include "launcher/commands/gpus.h"
#include "launcher/commands/kv.h"
#include "launcher/commands/logs.h"
#include "launcher/commands/manifest.h"
#include "launcher/commands/ps.h"
#include "launcher/commands/replay.h"
#include "launcher/commands/run.h"
#include "launcher/commands/slurm.h"
#include "launcher/commands/status.h"
#include "launcher/commands/stop.h"
#include "launcher/commands/store.h"
#include "launcher/commands/token.h"
#include "launcher/commands/top.h"

namespace muster::launcher {

std::vector<base::Command> Commands() {
  return {RunCommand(),   LaunchCommand(), PsCommand(),       AttachCommand(),
          StopCommand(),  DoctorCommand(), GpusCommand(),     StatusCommand(),
          TopCommand(),   LogsCommand(),   ReplayCommand(),   KvCommand(),
          StoreCommand(), SbatchCommand(), ManifestCommand(), TokenCommand()};
}

}  // namespace muster::launcher
