// Speaks proto/store.proto: parses a call, has the job's store do it (StoreCalls), and answers when
// the answer may be told. What a client has seen or been told is never taken back.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "proto/store.pb.h"
#include "rendezvous/core/store_calls.h"
#include "rendezvous/core/types.h"
#include "rendezvous/fronts/call_entrance.h"
#include "rendezvous/fronts/driver.h"
#include "rendezvous/fronts/loop_call.h"
#include "rendezvous/wire/peer.h"

namespace muster::rendezvous {

// Lives on the loop's thread. To stop: close the entrance and then this, shut gRPC's server down
// from another thread than the loop's while the loop still runs, then destroy all.
class GrpcStoreFront final {
 public:
  // Asked on the loop before a call waits: what to hold while it does, or why it must not. May be
  // empty.
  using Admit = std::function<absl::StatusOr<std::shared_ptr<void>>(const Peer&)>;

  // The entrance and the Drivers that it leads to must outlive the front.
  explicit GrpcStoreFront(CallEntrance& entrance, Admit admit = {});
  GrpcStoreFront(const GrpcStoreFront&) = delete;
  GrpcStoreFront& operator=(const GrpcStoreFront&) = delete;

  // Fails the calls that are open with UNAVAILABLE.
  void Close();

 private:
  using Call = std::shared_ptr<LoopCall>;

  template <typename Request, typename Response>
  void Serve(CallEntrance& entrance, Rpc rpc,
             void (GrpcStoreFront::*answer)(Driver&, const Call&, const Request&, Response*));

  // The calls.
  void Get(Driver&, const Call&, const store::v1::GetRequest&, store::v1::GetResponse*);
  void Set(Driver&, const Call&, const store::v1::SetRequest&, store::v1::SetResponse*);
  void Add(Driver&, const Call&, const store::v1::AddRequest&, store::v1::AddResponse*);
  void CompareSet(Driver&, const Call&, const store::v1::CompareSetRequest&,
                  store::v1::CompareSetResponse*);
  void Append(Driver&, const Call&, const store::v1::AppendRequest&, store::v1::AppendResponse*);
  void Delete(Driver&, const Call&, const store::v1::DeleteRequest&, store::v1::DeleteResponse*);
  void Check(Driver&, const Call&, const store::v1::CheckRequest&, store::v1::CheckResponse*);
  void Wait(Driver&, const Call&, const store::v1::WaitRequest&, store::v1::WaitResponse*);
  void Barrier(Driver&, const Call&, const store::v1::BarrierRequest&, store::v1::BarrierResponse*);
  void NumKeys(Driver&, const Call&, const store::v1::NumKeysRequest&, store::v1::NumKeysResponse*);
  void MultiGet(Driver&, const Call&, const store::v1::MultiGetRequest&,
                store::v1::MultiGetResponse*);
  void MultiSet(Driver&, const Call&, const store::v1::MultiSetRequest&,
                store::v1::MultiSetResponse*);

  // How each is answered: at once, or for Make when all that it waits for is there.
  void Read(Driver& driver, const Call& call, const std::string& run_id,
            const StoreCall::Body& body);
  void Write(Driver& driver, const Call& call, const std::string& run_id,
             const StoreCall::Body& body);
  void Make(Driver& driver, const Call& call, const StoreCall& what);
  absl::StatusOr<std::shared_ptr<void>> AdmitWait(const Driver& driver, const Call& call);

  const Admit admit_;
  // Each Driver numbers the calls that it is given.
  using OpenId = std::pair<Driver*, CallId>;
  struct Open {
    Call call;
    // Held by one that waits, which is counted for as long.
    std::shared_ptr<void> admitted;
  };
  std::size_t waiting_ = 0;  // calls that wait
  // Calls that have not been answered.
  std::map<OpenId, Open> open_;
};

}  // namespace muster::rendezvous
