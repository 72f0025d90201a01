// The libnccl.so.2 that the loader finds, to compare with the one that PyTorch ships.
#pragma once

#include <chrono>
#include <string>

#include "launcher/doctor/report.h"
#include "launcher/machine/environment.h"

namespace muster::launcher {

struct NcclLibrary {
  // As the loader finds it for a program without a search path of its own; empty: not found.
  std::string path;
  // Where the path comes from: "LD_PRELOAD" or "LD_LIBRARY_PATH"; empty: the system.
  std::string by;
  // "2.20.5"; empty if unknown.
  std::string version;
  // A library in LD_PRELOAD that does not exist; empty: none.
  std::string missing_preload;
};

// Asks `ldconfig -p`, then looks into the directories, each for at most `limit`. Call it on the
// only thread of a process. Loads nothing: the version comes from the file's name, or from a string
// in its bytes.
NcclLibrary FindNcclLibrary(const Environment& environment,
                            std::chrono::milliseconds limit = std::chrono::seconds(5));

// "2.20.5" from "/usr/lib/libnccl.so.2.20.5" and "... NCCL version 2.20.5+cuda12.4 ..."; empty if
// there is none.
std::string NcclVersionIn(const std::string& text);

// `bundled`: the version of the package that PyTorch depends on; empty: none is installed.
void Judge(const NcclLibrary& library, const std::string& bundled, Report& report);

}  // namespace muster::launcher
