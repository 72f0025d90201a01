// What a daemon gives up once it has what it needs: should somebody take it over all the same, he
// finds a process that can do little but serve.
#pragma once

#include <string>
#include <vector>

namespace muster::rendezvous {

struct Confinement {
  // Files and folders that are read again while the process runs, with all that lies in them.
  std::vector<std::string> reads;
  // Folders in which it writes.
  std::vector<std::string> writes;
};

// For this process, all threads that it starts from now on, and all its children:
//  - no new privileges, by set-user-id programs or otherwise;
//  - no core files, and nobody of the same user can look into its memory;
//  - of the file system (Landlock) only what `confinement` names, beside /etc and the system's
//    libraries, which names are resolved with; no program is started;
//  - no system calls (seccomp) that a daemon has no use for: exec, ptrace and other processes'
//    memory, mounts, namespaces, modules, keys, BPF, io_uring, clocks, and sockets other than TCP,
//    UDP, Unix and netlink. They fail with EPERM; one in another machine's convention ends the
//    process.
// Returns, one phrase each, what this kernel does not offer; the rest holds nevertheless. To be
// called while there is one thread.
std::vector<std::string> Confine(const Confinement& confinement);

}  // namespace muster::rendezvous
