// Drops every privilege that the daemon no longer needs once it has started, so that an exploit
// gains a process that can do little but serve.
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
//  - of the file system (Landlock) only what `confinement` names, beside /etc, what its files that
//    say how names are resolved lead to (system_files.h), and the system's libraries, which do
//    that; no program is started;
//  - no system calls (seccomp) that a daemon has no use for: exec, ptrace and other processes'
//    memory, mounts, namespaces, modules, keys, BPF, io_uring, clocks, and sockets other than TCP,
//    UDP, Unix and netlink. They fail with EPERM; one in another machine's convention ends the
//    process.
// Returns, one phrase each, what this kernel does not offer; the rest holds nevertheless. To be
// called while there is one thread.
std::vector<std::string> Confine(const Confinement& confinement);

// Which files a process goes on reading while it runs, and where they really lie.

// The folders that must be readable for the file to be read, now and after somebody has replaced
// it: the one in which it lies; where it is a link, also the one in which what it leads to lies;
// and where a folder on the way is a link to one beside it ("..data" of Kubernetes, "current"), the
// one in which both lie, as it will lead to another tomorrow. The file need not be there.
std::vector<std::string> FoldersOf(const std::string& file);

// What the system says of how names become addresses, and of the time here: /etc/resolv.conf and
// its like, wherever they lead, and the time zones. A folder that anybody puts anything into, such
// as /run, is not among them; then it is the file, which can be read until it is replaced.
std::vector<std::string> PlacesOfSystemFiles();

// Those of the files about names that are there and cannot be read by this process; one phrase
// each, with the cause.
std::vector<std::string> UnreadableFilesOfNames();

}  // namespace muster::rendezvous
