// Speaks proto/store.proto: parses a call, has the job's store do it (StoreCalls), and answers when
// the answer may be told. What a client has seen or been told is never taken back.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/status/statusor.h"
#include "proto/store.pb.h"
#include "rendezvous/core/daemon_core.h"
#include "rendezvous/core/values/types.h"
#include "rendezvous/fronts/daemon_loop.h"
#include "rendezvous/fronts/loop_call.h"
#include "rendezvous/fronts/rpc_router.h"
#include "rendezvous/net/peer.h"

namespace muster::rendezvous {

// Lives on the loop's thread. To stop: close the router and then this, shut gRPC's server down
// from another thread than the loop's while the loop still runs, then destroy all.
class GrpcStoreFront final {
 public:
  // Asked on the loop before a call waits: what to hold while it does, or why it must not. May be
  // empty.
  using Admit = std::function<absl::StatusOr<std::shared_ptr<void>>(const Peer&)>;

  // The router and the DaemonLoops that it leads to must outlive the front.
  explicit GrpcStoreFront(RpcRouter& router, Admit admit = {});
  GrpcStoreFront(const GrpcStoreFront&) = delete;
  GrpcStoreFront& operator=(const GrpcStoreFront&) = delete;

  // Fails the calls that are open with UNAVAILABLE.
  void Close();

 private:
  using Call = std::shared_ptr<LoopCall>;

  template <typename Request, typename Response>
  void Serve(RpcRouter& router, Rpc rpc,
             void (GrpcStoreFront::*answer)(const Call&, const Request&, Response*));

  // The calls.
  void Get(const Call&, const store::v1::GetRequest&, store::v1::GetResponse*);
  void Set(const Call&, const store::v1::SetRequest&, store::v1::SetResponse*);
  void Add(const Call&, const store::v1::AddRequest&, store::v1::AddResponse*);
  void CompareSet(const Call&, const store::v1::CompareSetRequest&, store::v1::CompareSetResponse*);
  void Append(const Call&, const store::v1::AppendRequest&, store::v1::AppendResponse*);
  void Delete(const Call&, const store::v1::DeleteRequest&, store::v1::DeleteResponse*);
  void Check(const Call&, const store::v1::CheckRequest&, store::v1::CheckResponse*);
  void Wait(const Call&, const store::v1::WaitRequest&, store::v1::WaitResponse*);
  void Barrier(const Call&, const store::v1::BarrierRequest&, store::v1::BarrierResponse*);
  void NumKeys(const Call&, const store::v1::NumKeysRequest&, store::v1::NumKeysResponse*);
  void MultiGet(const Call&, const store::v1::MultiGetRequest&, store::v1::MultiGetResponse*);
  void MultiSet(const Call&, const store::v1::MultiSetRequest&, store::v1::MultiSetResponse*);

  // How each is answered: at once, or for Make when all that it waits for is there.
  void Read(const Call& call, const std::string& run_id, const StoreCall::Body& body);
  void Write(const Call& call, const std::string& run_id, const StoreCall::Body& body);
  // The number of the call, if it is still open.
  std::optional<CallId> Make(const Call& call, const StoreCall& what);
  absl::StatusOr<std::shared_ptr<void>> AdmitWait(const Call& call);

  // Whose barrier, the job's run id, and its name.
  using Meeting = std::tuple<DaemonLoop*, std::string, std::string>;
  // Ends the calls there whose callers have lost the right to them: they no longer count.
  void DismissRevoked(const Meeting& meeting);
  // To be held while the call waits there.
  std::shared_ptr<void> BeAt(const Meeting& meeting, CallId id);

  const Admit admit_;
  // Each DaemonLoop numbers the calls that it is given.
  using OpenId = std::pair<DaemonLoop*, CallId>;
  struct Open {
    Call call;
    // Held by one that waits, which is counted for as long.
    std::shared_ptr<void> admitted;
    std::shared_ptr<void> at_barrier{};
  };
  std::size_t waiting_ = 0;  // calls that wait
  // Those that wait at a barrier.
  std::map<Meeting, std::set<CallId>> meetings_;
  // Calls that have not been answered.
  std::map<OpenId, Open> open_;
};

}  // namespace muster::rendezvous
