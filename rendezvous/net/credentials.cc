#include "rendezvous/net/credentials.h"

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

namespace muster::rendezvous {

Credentials Credentials::Plaintext() {
  return Credentials(grpc::InsecureServerCredentials(), grpc::InsecureChannelCredentials());
}

}  // namespace muster::rendezvous
