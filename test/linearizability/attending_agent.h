// The agent of a node without workers: it attends a job, so that there is one and it has a store.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "rendezvous/client/rendezvous_client.h"

namespace muster::linearizability {

// Takes its place in the job's rounds over and over, whatever becomes of the daemon. All on the
// loop's thread. Destroying it cuts its connection.
class AttendingAgent final : private rendezvous::RendezvousClient::Listener {
 public:
  // Joins at once. `loop` must outlive it.
  AttendingAgent(boost::asio::io_context& loop, std::uint16_t daemon_port, std::string run_id);

  // It had a place once: from then on there is a store.
  bool had_a_place() const { return had_a_place_; }
  // Why it will have none any more; empty as long as all is well.
  const std::string& trouble() const { return trouble_; }

 private:
  void Join();

  void OnDirective(const rendezvous::Directive& directive) override;
  void OnTrouble(const std::string&) override {}
  void OnOutOfTouch(const std::string&) override {}
  void OnBackInTouch(rendezvous::Duration) override {}
  void OnDeadline(std::optional<rendezvous::TimePoint>) override {}
  void OnFenced(const std::string&) override {}
  void OnLost(const absl::Status& status) override;

  const std::string run_id_;
  bool had_a_place_ = false;
  std::string trouble_;
  std::unique_ptr<rendezvous::RendezvousClient> client_;
};

}  // namespace muster::linearizability
