// gRPC's process-wide settings, made once, before its first use.
#pragma once

namespace muster::rendezvous {

// Sends gRPC's own log to ours at debug level (it never writes to the user's terminal by itself),
// and turns off the polling of idle channels and the search for deadlocks. To be called before any
// other use of gRPC, from the main thread; calls after the first do nothing.
void InitGrpcRuntime();

}  // namespace muster::rendezvous
