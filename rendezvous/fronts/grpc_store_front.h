// Speaks proto/store.proto: parses a call, has the job's store do it (StoreCalls), and answers when
// the answer may be told. What a client has seen or been told is never taken back.
//
// gRPC's threads enter the rpc methods and do nothing but post to the loop (see LoopCall). The
// stores are touched, and everything else happens, on the loop's thread.
//
// The front outlives the gRPC server it is registered with. To stop: Close, then shut the server
// down from another thread than the loop's while the loop still runs, then destroy both.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "absl/status/statusor.h"
#include "proto/store.grpc.pb.h"
#include "rendezvous/core/store_calls.h"
#include "rendezvous/core/types.h"
#include "rendezvous/fronts/access.h"
#include "rendezvous/fronts/driver.h"
#include "rendezvous/fronts/loop_call.h"
#include "rendezvous/wire/peer.h"

namespace muster::rendezvous {

class GrpcStoreFront final : public store::v1::Store::CallbackService {
 public:
  // Asked on the loop before a call waits: what to hold while it does, or why it must not. May be
  // empty.
  using Admit = std::function<absl::StatusOr<std::shared_ptr<void>>(const Peer&)>;

  // `loop` must outlive the front, and so must the Drivers that `access` leads to.
  GrpcStoreFront(boost::asio::io_context& loop, Access access, Admit admit = {});

  // On the loop: fails the calls that are open, and every call from now on, with UNAVAILABLE.
  void Close();

  // The rpcs, on gRPC's threads.
  using Context = grpc::CallbackServerContext;
  using Answer = grpc::ServerUnaryReactor;
  Answer* Get(Context*, const store::v1::GetRequest*, store::v1::GetResponse*) override;
  Answer* Set(Context*, const store::v1::SetRequest*, store::v1::SetResponse*) override;
  Answer* Add(Context*, const store::v1::AddRequest*, store::v1::AddResponse*) override;
  Answer* CompareSet(Context*, const store::v1::CompareSetRequest*,
                     store::v1::CompareSetResponse*) override;
  Answer* Append(Context*, const store::v1::AppendRequest*, store::v1::AppendResponse*) override;
  Answer* Delete(Context*, const store::v1::DeleteRequest*, store::v1::DeleteResponse*) override;
  Answer* Check(Context*, const store::v1::CheckRequest*, store::v1::CheckResponse*) override;
  Answer* Wait(Context*, const store::v1::WaitRequest*, store::v1::WaitResponse*) override;
  Answer* Barrier(Context*, const store::v1::BarrierRequest*, store::v1::BarrierResponse*) override;
  Answer* NumKeys(Context*, const store::v1::NumKeysRequest*, store::v1::NumKeysResponse*) override;
  Answer* MultiGet(Context*, const store::v1::MultiGetRequest*,
                   store::v1::MultiGetResponse*) override;
  Answer* MultiSet(Context*, const store::v1::MultiSetRequest*,
                   store::v1::MultiSetResponse*) override;

 private:
  using Body = StoreCall::Body;

  // How each rpc is answered: `body` runs on the loop, at once or when all of `keys` exist. The
  // arguments may point into the request.
  Answer* AnswerAtOnce(Rpc rpc, Context& context, const std::string& run_id, Body body);
  // As AnswerAtOnce, for a body that writes.
  Answer* AnswerWrite(Rpc rpc, Context& context, const std::string& run_id, Body body);
  Answer* AnswerAfterWait(Rpc rpc, Context& context, const std::string& run_id,
                          std::vector<std::string_view> keys, std::optional<Duration> timeout,
                          Body body);
  void Make(std::shared_ptr<LoopCall> call, Rpc rpc, const Context& context, const StoreCall& what);
  absl::StatusOr<std::shared_ptr<void>> AdmitWait(const Context& context);

  boost::asio::io_context& loop_;
  const Access access_;
  const Admit admit_;
  // Each Driver numbers the calls that it is given.
  using OpenId = std::pair<Driver*, CallId>;
  struct Open {
    std::shared_ptr<LoopCall> call;
    // Held by one that waits, which is counted for as long.
    std::shared_ptr<void> admitted;
  };
  std::size_t waiting_ = 0;  // calls that wait
  // Calls that have not been answered.
  std::map<OpenId, Open> open_;
  bool closed_ = false;
};

}  // namespace muster::rendezvous
