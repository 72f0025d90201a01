// gRPC's process-wide settings, made once, before its first use.
#pragma once

namespace muster::rendezvous {

// Sends gRPC's own log to ours at debug level (it has no voice of its own on the user's terminal),
// and turns off the polling of idle channels and the search for deadlocks. To be called before any
// other use of gRPC, from the main thread; calls after the first do nothing.
void InitGrpcRuntime();

}  // namespace muster::rendezvous
