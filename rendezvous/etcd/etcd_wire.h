// Etcd's messages, made of our values and turned into them.
#pragma once

#include <vector>

#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "etcd/etcdserver/etcdserverpb/rpc.pb.h"
#include "rendezvous/etcd/etcd.h"

namespace muster::rendezvous::etcd {

etcdserverpb::TxnRequest ToWire(const Transaction& transaction);
Outcome FromWire(const etcdserverpb::TxnResponse& response);

// Asks for each change to keys of the range after the revision. What is much at once, as after a
// while without a connection, comes in fragments: etcd puts up to 1000 revisions into one answer.
etcdserverpb::WatchRequest ToWire(const Range& range, Revision after);
std::vector<Change> FromWire(const etcdserverpb::WatchResponse& response, Revision after);

// What has become of a call:
//   Unavailable         it has to be made again, of another member
//   Unauthenticated     it has to be made again, with a new token
//   others              as Etcd says
absl::Status FromWire(const grpc::Status& status);

}  // namespace muster::rendezvous::etcd
