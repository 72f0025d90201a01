#include "test/linearizability/attending_agent.h"

#include <chrono>
#include <utility>
#include <variant>

#include "rendezvous/client/rendezvous_client.h"

namespace muster::linearizability {

using rendezvous::Assignment;
using rendezvous::Evicted;
using rendezvous::Refused;
using rendezvous::Stop;

AttendingAgent::AttendingAgent(boost::asio::io_context& loop, std::uint16_t daemon_port,
                               const rendezvous::Credentials& credentials, std::string run_id)
    : run_id_(std::move(run_id)),
      client_(rendezvous::MakeGrpcClient(
          loop, {.endpoint = {"127.0.0.1", daemon_port}, .credentials = credentials}, *this)) {
  Join();
}

void AttendingAgent::Join() {
  // The lease is longer than anything that happens in a history, on the slowest machine: a job that
  // ends takes its store along.
  client_->Join(
      {.run_id = run_id_,
       .settings = {.lease = std::chrono::minutes(2)},
       .node = {.node_id = "node", .host = "localhost", .address = "127.0.0.1", .master_port = 1}});
}

void AttendingAgent::OnDirective(const rendezvous::Directive& directive) {
  if (const auto* assignment = std::get_if<Assignment>(&directive)) {
    had_a_place_ = true;
    client_->Say(rendezvous::WorkersStarted{assignment->id()});
  } else if (std::holds_alternative<Stop>(directive) ||
             std::holds_alternative<Evicted>(directive)) {
    // Evicted: the daemon knows nothing of this agent any more. It has no workers to wait for.
    Join();
  } else if (const auto* refused = std::get_if<Refused>(&directive)) {
    trouble_ = refused->sentence;
  } else if (const auto* verdict = std::get_if<rendezvous::Verdict>(&directive)) {
    trouble_ = verdict->sentence;
  }
}

void AttendingAgent::OnLost(const absl::Status& status) {
  trouble_ = std::string(status.message());
}

}  // namespace muster::linearizability
