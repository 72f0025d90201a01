// A worker's connection at its own end of a tunnel.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include "proto/tunnel.grpc.pb.h"
#include "rendezvous/tunnel/byte_stream.h"
#include "rendezvous/tunnel/relay.h"

namespace muster::rendezvous {

// gRPC's callbacks run on its threads and post; all else is the loop's. Created with new; its owner
// releases it with Abandon or when on_done is called, and it deletes itself once gRPC is done with
// it.
class TunnelStream final : public grpc::ClientBidiReactor<tunnel::v1::Chunk, tunnel::v1::Chunk>,
                           private ByteStream {
 public:
  struct Handlers {
    // The other end has let it in.
    std::function<void()> on_answered;
    // The stream has ended, and the worker's connection as well; the last call.
    std::function<void(const grpc::Status&)> on_done;
  };

  // Waits for the channel to be connected, for as long as that takes. `buffer` as Relay's.
  TunnelStream(boost::asio::io_context& io, tunnel::v1::Tunnel::Stub& stub,
               const tunnel::v1::Open& open, Relay::Socket worker, std::vector<char>& buffer,
               Handlers handlers);

  // Resets the worker's connection and cuts the stream; no handler is called any more.
  void Abandon();

  void OnReadInitialMetadataDone(bool ok) override;
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  // ByteStream.
  void Read() override;
  void Write(std::string_view bytes) override;
  void WriteEnd() override;
  void Finish() override;
  void Abort() override;

  void HandleRead(bool ok);
  void HandleWritten(bool ok);
  void Break();
  // Lets gRPC end the call: nothing is started on it any more.
  void Release();

  boost::asio::io_context& io_;
  // gRPC's threads post until OnDone: the loop must not run dry before.
  const boost::asio::executor_work_guard<boost::asio::io_context::executor_type> stay_;
  Handlers handlers_;

  grpc::ClientContext context_;
  tunnel::v1::Chunk in_;   // gRPC's between StartRead and OnReadDone
  tunnel::v1::Chunk out_;  // and between StartWrite and OnWriteDone
  bool opened_ = false;    // the Open is written, and the relay has begun
  bool released_ = false;
  Relay relay_;
};

}  // namespace muster::rendezvous
