// Which libnccl.so.2 the loader finds, and whether it is the one that PyTorch brings along.
#pragma once

#include <chrono>
#include <string>

#include "launcher/doctor/report.h"
#include "launcher/environment.h"

namespace muster::launcher {

struct NcclLibrary {
  // As the loader finds it for a program that names no directory of its own; empty: nowhere.
  std::string path;
  // Where that comes from: "LD_PRELOAD", "LD_LIBRARY_PATH"; empty: it is one of the system's.
  std::string by;
  // "2.20.5"; empty: it does not say.
  std::string version;
  // What LD_PRELOAD names and is not there; empty: nothing.
  std::string missing_preload;
};

// Asks `ldconfig -p`, and looks at directories, each for `limit` at most; on the main thread of a
// process that has no other. Nothing is loaded: the
// version is that in the file's name, or in what the library says of itself, which is looked for in
// its bytes.
NcclLibrary FindNcclLibrary(const Environment& environment,
                            std::chrono::milliseconds limit = std::chrono::seconds(5));

// "2.20.5" in "/usr/lib/libnccl.so.2.20.5" and in "... NCCL version 2.20.5+cuda12.4 ..."; empty:
// there is none.
std::string NcclVersionIn(const std::string& text);

// `bundled`: of the package that PyTorch is installed with; empty: there is none.
void Judge(const NcclLibrary& library, const std::string& bundled, Report& report);

}  // namespace muster::launcher
