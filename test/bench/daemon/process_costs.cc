#include "test/bench/daemon/process_costs.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace muster::rendezvous::bench {

double CpuSeconds(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  std::istringstream fields(text.substr(text.rfind(')') + 2));  // from the third on
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

int MemoryKib(int pid, const std::string& name) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/smaps_rollup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name + ":")) return std::atoi(line.c_str() + name.size() + 1);
  }
  std::fprintf(stderr, "load generator: /proc/%d/smaps_rollup has no %s\n", pid, name.c_str());
  std::exit(1);
}

}  // namespace muster::rendezvous::bench
