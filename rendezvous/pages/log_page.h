// How logs are asked for over HTTP, and answered.
#pragma once

#include <string>

#include <boost/asio/io_context.hpp>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rendezvous/core/log_request.h"
#include "rendezvous/fronts/log_exchange.h"
#include "rendezvous/http/http_server.h"

namespace muster::rendezvous {

// "rank=3&tail=50&round=1": a rank, which must be there; lines of each of its streams, 100 unless
// it is said, and 1,000 at most; a round, the last one unless it is said. An error says what is
// wrong.
absl::StatusOr<LogRequest> ParseLogQuery(const std::string& run_id, absl::string_view query);

// Reads it, and answers with
//   {"round": 1, "text": "...", "notices": ["..."]}
// where `text` is what there is of the rank's stdout and then of its stderr, at most 256 KiB, as
// UTF-8 without control characters; or with {"error": "..."}. `io` and `logs` must outlive it.
HttpAnswer AnswerWithLog(boost::asio::io_context& io, LogExchange& logs, LogRequest request);

}  // namespace muster::rendezvous
