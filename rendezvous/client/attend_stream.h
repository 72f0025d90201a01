// One connection of an agent to its daemon, and the one stream on it.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include <grpcpp/client_context.h>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/core/event.h"

namespace muster::rendezvous {

// gRPC's callbacks run on its threads and post; all else is the loop's. Created with new; its owner
// releases it with Abandon or when on_done is called, and it deletes itself once gRPC is done with
// it.
class AttendStream final : public grpc::ClientBidiReactor<v1::AgentEvent, v1::Directive> {
 public:
  struct Handlers {
    std::function<void(const v1::Directive&)> on_directive;
    // The stream has ended; the last call.
    std::function<void(const grpc::Status&)> on_done;
  };

  AttendStream(boost::asio::io_context& io, std::unique_ptr<v1::Rendezvous::Stub> stub,
               Handlers handlers);

  void Send(const Event& event);
  // Ends our side once everything has been written, and sends nothing more; on_done follows when
  // the daemon has heard it.
  void FinishWriting();
  // Cuts the stream; no handler is called any more.
  void Abandon();

  // Where the other end is, "ipv4:10.0.0.1:29400"; known once something came from there.
  std::string peer() const { return context_.peer(); }

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  void HandleRead(bool ok);
  void HandleWritten(bool ok);
  void WriteNext();
  void Release();

  // The state of our side of the stream.
  enum class Writes {
    kOpen,
    kFinishing,  // it ends when all that is unsent has been written
    kDone,       // gRPC was told so
  };

  boost::asio::io_context& io_;
  const std::unique_ptr<v1::Rendezvous::Stub> stub_;
  // gRPC's threads post until OnDone: the loop must not run dry before.
  const boost::asio::executor_work_guard<boost::asio::io_context::executor_type> stay_;
  Handlers handlers_;

  grpc::ClientContext context_;
  v1::Directive directive_;  // gRPC's between StartRead and OnReadDone
  std::deque<v1::AgentEvent> unsent_;
  bool writing_ = false;  // unsent_.front() is gRPC's
  Writes writes_ = Writes::kOpen;
  bool released_ = false;
};

}  // namespace muster::rendezvous
