#include "rendezvous/net/grpc_runtime.h"

#include <cstdlib>
#include <string>

#include <google/protobuf/stubs/logging.h>
#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <spdlog/spdlog.h>

#include "absl/synchronization/mutex.h"

namespace muster::rendezvous {

void InitGrpcRuntime() {
  static const bool done = [] {
    gpr_set_log_function([](gpr_log_func_args* args) { spdlog::debug("grpc: {}", args->message); });
    // Protobuf's own handler writes to stderr from whichever thread, and waits where nobody reads
    // it: two messages that are not UTF-8 would stop gRPC's threads for good.
    google::protobuf::SetLogHandler(
        [](google::protobuf::LogLevel, const char*, int, const std::string& message) {
          spdlog::debug("protobuf: {}", message);
        });
    // Channels are polled every five seconds on behalf of applications that do not look after their
    // calls; our stream always waits. This is the only way to say so. Workers do not see it, as
    // their environment was read before.
    setenv("GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS", "0", 0);
    // gRPC 1.51 has no other setting that leaves TLS 1.2 and earlier out: of their ciphers only one
    // is offered, for keys that both ends have beforehand, which nobody has.
    setenv("GRPC_SSL_CIPHER_SUITES", "PSK-AES128-GCM-SHA256", 1);
    // gRPC's locks are Abseil's, and Debian builds that to look for cycles in the order in which
    // locks are taken: a graph of them all, walked and grown under one global lock.
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    // Never undone: with its last channel gRPC would end its threads, and wait for ever for one
    // that could not be started because the system allowed no more (1.51, timer_manager.cc).
    grpc_init();
    return true;
  }();
  static_cast<void>(done);
}

}  // namespace muster::rendezvous
