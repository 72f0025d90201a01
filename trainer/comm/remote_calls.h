// Calls from one member of a group to another, which answers asynchronously.
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
// Python, by TCP. (TensorPipe's own shared memory busy-polls on a thread per process: four ranks on
// two cores trained at a quarter of the speed.) Made by Group::MakeRemoteCalls(); that group must
// outlive it.
//
// An agent listens at the address that Gloo uses, and like Gloo has no encryption. It only answers
// calls that contain a secret shared by the members through the store; but TensorPipe trusts its
// input, and foreign bytes crash the process. So agents stop listening as soon as the members are
// connected.
class RemoteCalls {
 public:
  using Tensors = std::vector<at::Tensor>;
  // Takes the answer to a call, or the error, in the words of the member that failed. Call it once,
  // on any thread.
  using Answer = std::function<void(absl::StatusOr<Tensors> answer)>;
  // Receives a call: the caller's `what` and arguments. Runs on a thread of the agent, in no
  // particular order, and must not block; it, or another thread later, calls `answer`.
  using Handler = std::function<void(const std::string& what, Tensors arguments, Answer answer)>;

  // Where the members meet.
  struct Place {
    c10::intrusive_ptr<c10d::Store> store;  // used only by them
    std::string interface;                  // of the network; empty: TensorPipe's guess
    int rank = 0;                           // among the members
    int size = 1;
    std::chrono::milliseconds timeout{0};
  };

  // Connects all members with one another. Blocks until all have arrived, at most for the timeout;
  // then throws what c10d throws. Meanwhile no other thread may start listening.
  RemoteCalls(const Place& place, std::shared_ptr<GroupMeter> meter, Handler handler);
  // Does not wait for other members. An answer given just before may not have been sent yet, so
  // have the members meet in an operation of the group after the last call. Calls still waiting for
  // answers get an error.
  ~RemoteCalls();
  RemoteCalls(const RemoteCalls&) = delete;
  RemoteCalls& operator=(const RemoteCalls&) = delete;

  // Calls member `to`, which must not be this one. `done` gets the answer, or an error if that
  // member has ended, on a thread of the agent or on this one; it must not block or throw. There is
  // no timeout: calls queue behind earlier ones, and only the caller knows how long that may take.
  // Tensor bytes, also of answers, count under Use::kActivations. Thread-safe. Throws nothing.
  void Call(int to, const std::string& what, Tensors arguments, Answer done);

  // Records as an operation that this member waits for member `from`'s call `what`, until Came().
  FlightTicket AwaitCall(int from, const std::string& what);
  void Came(const FlightTicket& ticket);

  // Calls `gone` once, on a thread of the agent, when member `to`'s process or RemoteCalls have
  // ended. It must not block or throw.
  void Watch(int to, std::function<void()> gone);

 private:
  struct Agent;  // LibTorch's, defined in the .cc
  // Connects each member to all others. Throws what c10d throws.
  void Meet(const Place& place);

  const std::shared_ptr<GroupMeter> meter_;
  const std::unique_ptr<Agent> agent_;
};

}  // namespace muster::trainer
