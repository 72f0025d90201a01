// Whose a connection's other end is, where that is on this machine.
#pragma once

#include <sys/types.h>

namespace muster::rendezvous {

enum class PeerOwner {
  kElsewhere,  // the other end has an address of another machine
  kOurs,       // a process of this one's user, or of root
  kOthers,     // a process of another user, or one that has closed it already
  kUnknown,    // the kernel does not say: it has no sock_diag, or we may not ask
};

// Asks the kernel (man 7 sock_diag) about the other end of a TCP connection; a few microseconds. An
// end whose address is that of this end, or a loopback address, is on this machine. One that is in
// another network namespace is not to be found, and counts as another user's: it has come through
// an address of this machine, and who has sent it is not known.
//
// For kOthers `*user` is whose it is, or -1 where it is closed or not found.
PeerOwner OwnerOfPeer(int fd, uid_t* user);

}  // namespace muster::rendezvous
