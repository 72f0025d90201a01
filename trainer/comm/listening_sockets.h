// The sockets at which this process can be reached.
#pragma once

#include <vector>

namespace muster::trainer {

// The file descriptors of this process that are sockets which listen, over TCP, in ascending order.
// Those that another thread opens or closes meanwhile may or may not be among them.
std::vector<int> ListeningSockets();

// Ends listening at `socket`, which stays open: whoever owns it sees that nothing can be accepted
// any more. Connections that were accepted are not affected.
void StopListening(int socket);

}  // namespace muster::trainer
