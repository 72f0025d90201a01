// One connection of a tool to a daemon, and the one call Watch on it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <grpcpp/client_context.h>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include "proto/rendezvous.grpc.pb.h"

namespace muster::rendezvous {

// gRPC's callbacks run on its threads and post; all else is the loop's. Created with new; its owner
// releases it with Abandon or when on_done is called, and it deletes itself once gRPC is done with
// it.
class WatchStream final : public grpc::ClientReadReactor<v1::WatchUpdate> {
 public:
  struct Handlers {
    // The next one is read when this returns: a loop that is busy is told later, and what has
    // changed meanwhile at once.
    std::function<void(const v1::WatchUpdate&)> on_update;
    // The stream has ended; the last call.
    std::function<void(const grpc::Status&)> on_done;
  };

  // `run_id`: WatchRequest's.
  WatchStream(boost::asio::io_context& io, std::unique_ptr<v1::Rendezvous::Stub> stub,
              const std::string& run_id, Handlers handlers);

  // Cuts the stream; no handler is called any more.
  void Abandon();

  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  void HandleRead(bool ok);
  void Release();

  boost::asio::io_context& io_;
  const std::unique_ptr<v1::Rendezvous::Stub> stub_;
  // gRPC's threads post until OnDone: the loop must not run dry before.
  const boost::asio::executor_work_guard<boost::asio::io_context::executor_type> stay_;
  Handlers handlers_;

  grpc::ClientContext context_;
  v1::WatchRequest request_;
  v1::WatchUpdate update_;  // gRPC's between StartRead and OnReadDone
  bool released_ = false;
};

}  // namespace muster::rendezvous
