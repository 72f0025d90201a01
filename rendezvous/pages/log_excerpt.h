// The last lines of a rank, for who asks once.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "absl/status/status.h"
#include "base/lifetime.h"
#include "rendezvous/core/log_request.h"
#include "rendezvous/fronts/log_exchange.h"

namespace muster::rendezvous {

// Reads what `request` asks for, which must not be to be followed, to its end, to kMostBytes, or
// for four seconds. Lives on the loop's thread; `io` and `logs` must outlive it. Nothing is called
// any more once it is destroyed.
class LogExcerpt {
 public:
  static constexpr std::size_t kMostBytes = 256 * 1024;

  struct Result {
    // Why nothing could be read at all; OK also where something is missing, as `notices` say then.
    absl::Status status;
    std::optional<RoundNumber> round{};
    std::string text{};
    std::vector<std::string> notices{};
  };

  // `done` is called once, from the loop; it may destroy this.
  LogExcerpt(boost::asio::io_context& io, LogExchange& logs, LogRequest request,
             std::function<void(Result)> done);
  ~LogExcerpt();
  LogExcerpt(const LogExcerpt&) = delete;
  LogExcerpt& operator=(const LogExcerpt&) = delete;

 private:
  void Take(const LogPart& part);
  void End(const absl::Status& status);

  boost::asio::io_context& io_;
  LogExchange& logs_;
  std::function<void(Result)> done_;
  Result result_;
  bool over_ = false;
  LogReaderId reader_ = 0;
  boost::asio::steady_timer limit_;
  const base::Lifetime lifetime_;
};

}  // namespace muster::rendezvous
