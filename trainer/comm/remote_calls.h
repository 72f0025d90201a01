// Calls from one member of a group to another, which answers when it can.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include "absl/status/statusor.h"

#include "trainer/comm/group_facts.h"

namespace c10d {
class Store;
}

namespace muster::trainer {

// Calls and answers between the members of one group, over LibTorch's TensorPipe agent without
// Python, by TCP. (TensorPipe's own shared memory looks for messages without a pause, on a thread
// for each process: four ranks on two cores trained at a quarter of the speed.) Made by
// Group::MakeRemoteCalls(); that group must outlive it.
//
// An agent listens at the address that Gloo uses, and like Gloo knows no encryption. It answers
// those calls alone that hold a secret which the members share through the store; but TensorPipe
// trusts whatever reaches it, and other bytes than its own end the process. So nobody listens any
// longer than it takes the members to connect.
class RemoteCalls {
 public:
  using Tensors = std::vector<at::Tensor>;
  // Takes the answer to a call, or why there is none, with the words of whoever failed. Call it
  // once, on any thread.
  using Answer = std::function<void(absl::StatusOr<Tensors> answer)>;
  // Is given a call: `what` the caller wrote, and its arguments. Runs on a thread of the agent, in
  // no order, and must not block; it, or another thread later, calls `answer`.
  using Handler = std::function<void(const std::string& what, Tensors arguments, Answer answer)>;

  // Where the members meet.
  struct Place {
    c10::intrusive_ptr<c10d::Store> store;  // they alone use it
    std::string interface;                  // of the network; empty: TensorPipe guesses
    int rank = 0;                           // among the members
    int size = 1;
    std::chrono::milliseconds timeout{0};
  };

  // Connects all members with one another. Blocks until all have come, for at most the timeout;
  // throws what c10d throws when they do not. No other thread may begin to listen meanwhile.
  RemoteCalls(const Place& place, std::shared_ptr<GroupMeter> meter, Handler handler);
  // Waits for no other member. An answer that was given just before may not have left yet, so let
  // the members meet in an operation of the group after the last call. Those calls that wait for
  // answers get an error.
  ~RemoteCalls();
  RemoteCalls(const RemoteCalls&) = delete;
  RemoteCalls& operator=(const RemoteCalls&) = delete;

  // Calls member `to`, which must not be this one. `done` takes the answer, or an error when that
  // member has ended, on a thread of the agent or on this one; it must not block, and throws
  // nothing. There is no timeout: calls wait for those before them, and only who waits knows for
  // how long. Bytes of tensors, those of answers too, count as sent for Use::kActivations.
  // Thread-safe. Throws nothing.
  void Call(int to, const std::string& what, Tensors arguments, Answer done);

  // Records, as its operation, that this member waits for a call from member `from` to do `what`,
  // until Came() is called.
  FlightTicket AwaitCall(int from, const std::string& what);
  void Came(const FlightTicket& ticket);

  // Calls `gone` once, on a thread of the agent, when the process of member `to` has ended or its
  // RemoteCalls have. It must not block, and throws nothing.
  void Watch(int to, std::function<void()> gone);

 private:
  struct Agent;  // of LibTorch, defined in the .cc
  // Has each member connect to all others. Throws what c10d throws.
  void Meet(const Place& place);

  const std::shared_ptr<GroupMeter> meter_;
  const std::unique_ptr<Agent> agent_;
};

}  // namespace muster::trainer
