// When this thread's io_context has last come back from waiting: what Asio does not tell.
#pragma once

#include <chrono>

namespace muster::asio {

// Where it is written each time that Asio has asked the kernel what is ready, be it after a wait or
// only in passing; null: nowhere, and nothing is measured.
inline constinit thread_local std::chrono::steady_clock::time_point* woke = nullptr;

}  // namespace muster::asio
