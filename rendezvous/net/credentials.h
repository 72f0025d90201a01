// How the two ends of a connection prove who they are. A value that is handed in where a server or
// a client is made; nothing else in Muster knows what it holds, so that securing the wire is a
// change here.
#pragma once

#include <memory>

namespace grpc {
class ChannelCredentials;
class ServerCredentials;
}  // namespace grpc

namespace muster::rendezvous {

class Credentials {
 public:
  // No proof and no encryption: for loopback, and for networks whose every host is trusted.
  static Credentials Plaintext();

  std::shared_ptr<grpc::ServerCredentials> ForServer() const { return server_; }
  std::shared_ptr<grpc::ChannelCredentials> ForClient() const { return client_; }

 private:
  Credentials(std::shared_ptr<grpc::ServerCredentials> server,
              std::shared_ptr<grpc::ChannelCredentials> client)
      : server_(std::move(server)), client_(std::move(client)) {}

  std::shared_ptr<grpc::ServerCredentials> server_;
  std::shared_ptr<grpc::ChannelCredentials> client_;
};

}  // namespace muster::rendezvous
