// An agent without workers that attends a job, so that the job exists and has a store.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "rendezvous/client/rendezvous_client.h"
#include "rendezvous/net/credentials.h"

namespace muster::linearizability {

// Keeps joining the job's rounds, whatever happens to the daemon. Everything runs on the loop's
// thread. Destroying it cuts its connection.
class AttendingAgent final : private rendezvous::RendezvousClient::Listener {
 public:
  // Joins immediately. `loop` must outlive this object.
  AttendingAgent(boost::asio::io_context& loop, std::uint16_t daemon_port,
                 const rendezvous::Credentials& credentials, std::string run_id);

  // Whether it has ever had a place; from then on there is a store.
  bool had_a_place() const { return had_a_place_; }
  // Why it will not get a place any more; empty as long as all is well.
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
