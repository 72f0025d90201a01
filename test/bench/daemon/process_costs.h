// What a process has cost, according to proc(5).
#pragma once

#include <string>

namespace muster::rendezvous::bench {

// Seconds of a processor, user and system, of its whole life.
double CpuSeconds(int pid);

// "Rss" or "Pss", in KiB; ends the load generator if it cannot be read.
int MemoryKib(int pid, const std::string& name);

}  // namespace muster::rendezvous::bench
