// Speaks proto/store.proto: parses a call, asks the job's KeyValueStore once, formats what it says,
// and answers once that is durable: what a client has seen or was told of is never taken back.
//
// gRPC's threads enter the rpc methods and do nothing but post to the loop (see LoopCall). The
// stores are touched, and everything else happens, on the loop's thread. Between calls the front
// sleeps: one timer is set to the earliest deadline of the waits it holds.
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
#include <boost/asio/steady_timer.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/store.grpc.pb.h"
#include "rendezvous/core/key_value_store.h"
#include "rendezvous/core/types.h"
#include "rendezvous/fronts/driver.h"
#include "rendezvous/fronts/loop_call.h"

namespace muster::rendezvous {

class GrpcStoreFront final : public store::v1::Store::CallbackService {
 public:
  // `loop` and `driver` must outlive the front.
  GrpcStoreFront(boost::asio::io_context& loop, Driver& driver);

  // On the loop: the job has ended. Fails the calls that wait in its store with ABORTED. Must be
  // called no later than when the store goes away, and before another one takes its name.
  void DropStore(std::string_view run_id);

  // On the loop: fails the calls that wait, and every call from now on, with UNAVAILABLE.
  void Close();

  // How many calls wait, over all jobs. On the loop.
  std::size_t NumWaitingCalls() const;

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
  Answer* NumKeys(Context*, const store::v1::NumKeysRequest*, store::v1::NumKeysResponse*) override;
  Answer* MultiGet(Context*, const store::v1::MultiGetRequest*,
                   store::v1::MultiGetResponse*) override;
  Answer* MultiSet(Context*, const store::v1::MultiSetRequest*,
                   store::v1::MultiSetResponse*) override;

 private:
  // What a call does with the job's store.
  using Body = std::function<absl::Status(KeyValueStore& store)>;

  struct WaitingCall {
    std::shared_ptr<LoopCall> call;
    Body body;
  };
  using JobCalls = std::map<std::string, std::map<WaiterId, WaitingCall>, std::less<>>;

  // How each rpc is answered: `body` runs on the loop, at once or when all of `keys` exist. What
  // they are given may point into the request.
  Answer* AnswerAtOnce(const std::string& run_id, Body body);
  // As AnswerAtOnce, for a body that writes.
  Answer* AnswerWrite(const std::string& run_id, Body body);
  Answer* AnswerAfterWait(const std::string& run_id, std::vector<std::string_view> keys,
                          std::optional<Duration> timeout, Body body);

  // The store, or why there is none for this call.
  absl::StatusOr<KeyValueStore*> Find(const std::string& run_id) const;
  // Answers the calls whose wait has ended, and sets the timer. Follows each call of a store.
  void Settle(const std::string& run_id, KeyValueStore& store);
  void FailWaitingCalls(JobCalls::node_type job, const absl::Status& status);
  void CancelWait(const std::string& run_id, WaiterId waiter);
  void OnTimer();
  void FinishWhenDurable(std::shared_ptr<LoopCall> call, absl::Status status);

  Driver& driver_;

  boost::asio::io_context& loop_;
  JobCalls waiting_;  // by run id; no job without calls
  // Shared only with its handler, which thereby knows when the front is gone.
  std::shared_ptr<boost::asio::steady_timer> timer_;
  std::optional<TimePoint> timer_due_;
  bool closed_ = false;
};

}  // namespace muster::rendezvous
