#include "launcher/doctor/machine.h"

#include "launcher/doctor/clock.h"
#include "launcher/doctor/control_group.h"
#include "launcher/doctor/file_systems.h"
#include "launcher/doctor/gpus.h"
#include "launcher/doctor/limits.h"
#include "launcher/doctor/names.h"
#include "launcher/doctor/nccl.h"
#include "launcher/doctor/nccl_library.h"
#include "launcher/doctor/shared_memory.h"
#include "launcher/doctor/versions.h"

namespace muster::launcher {

Report ExamineMachine(const Examination& examination, const Environment& environment) {
  Report report;
  Judge(ReadNames(), report);
  Judge(ReadNetworks(), environment, examination.has_peers, report);
  Judge(ReadClock(), report);
  Judge(ReadSharedMemory(), report);
  Judge(ReadLimits(), report);
  Judge(ReadControlGroup(), report);
  Judge(ReadGpus(), environment, report);
  const std::string temporary = GetOr(environment, "TMPDIR", "/tmp");
  Judge(ReadDirectory(DirectoryUse::kTemporary, temporary), examination.has_peers, report);
  if (!examination.log_dir.empty() && examination.log_dir != "/dev/null") {
    Judge(ReadDirectory(DirectoryUse::kLogs, examination.log_dir), examination.has_peers, report);
  }
  for (const std::string& path : examination.checkpoints) {
    Judge(ReadDirectory(DirectoryUse::kCheckpoints, path), examination.has_peers, report);
  }
  const Versions versions = ReadVersions(environment);
  const auto bundled = versions.found.find("NCCL");
  Judge(FindNcclLibrary(environment), bundled == versions.found.end() ? "" : bundled->second,
        report);
  Judge(versions, report);
  SortFindings(report);
  return report;
}

}  // namespace muster::launcher
