// Etcd's messages, made of our values and turned into them.
#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "etcd/etcdserver/etcdserverpb/rpc.pb.h"
#include "rendezvous/etcd/etcd.h"

namespace muster::rendezvous::etcd {

etcdserverpb::TxnRequest ToWire(const Transaction& transaction);
Outcome FromWire(const etcdserverpb::TxnResponse& response);

// What has become of a call:
//   Unavailable         it has to be made again, of another member
//   Unauthenticated     it has to be made again, with a new token
//   others              as Etcd says
absl::Status FromWire(const grpc::Status& status);

}  // namespace muster::rendezvous::etcd
