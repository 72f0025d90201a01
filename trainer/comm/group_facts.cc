#include "trainer/comm/group_facts.h"

#include <string>
#include <utility>
#include <vector>

#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "absl/strings/str_cat.h"

namespace muster::trainer {
namespace {

using Pending = c10::intrusive_ptr<c10d::Work>;

// A message in progress; its end is recorded when wait() returns, as Gloo's messages have no future
// to report it.
class RecordedMessage : public c10d::Work {
 public:
  RecordedMessage(Pending inner, std::shared_ptr<GroupMeter> meter, FlightTicket ticket)
      : inner_(std::move(inner)), meter_(std::move(meter)), ticket_(ticket) {}

  bool isCompleted() override { return inner_->isCompleted(); }
  bool isSuccess() const override { return inner_->isSuccess(); }
  std::exception_ptr exception() const override { return inner_->exception(); }
  void synchronize() override { inner_->synchronize(); }
  bool wait(std::chrono::milliseconds timeout) override {
    const bool done = inner_->wait(timeout);
    if (done) meter_->flights.Leave(ticket_);
    return done;
  }
  void abort() override { inner_->abort(); }

 private:
  const Pending inner_;
  const std::shared_ptr<GroupMeter> meter_;
  const FlightTicket ticket_;
};

class RecordedGroup : public c10d::ProcessGroup {
 public:
  RecordedGroup(c10::intrusive_ptr<c10d::ProcessGroup> inner, std::shared_ptr<GroupMeter> meter,
                FlightPart part, std::optional<Use> use)
      : c10d::ProcessGroup(inner->getRank(), inner->getSize()),
        inner_(std::move(inner)),
        meter_(std::move(meter)),
        part_(part),
        use_(use) {}

  // Not "gloo": c10d::Logger casts anything of that name to ProcessGroupGloo.
  const std::string getBackendName() const override {
    return "recorded " + inner_->getBackendName();
  }

  Pending broadcast(std::vector<at::Tensor>& tensors,
                    const c10d::BroadcastOptions& options) override {
    const FlightTicket ticket = Enter(Operation::kBroadcast, tensors[0]);
    return LeftAtItsEnd(inner_->broadcast(tensors, options), ticket, tensors[0]);
  }

  Pending allreduce(std::vector<at::Tensor>& tensors,
                    const c10d::AllreduceOptions& options) override {
    const FlightTicket ticket = Enter(Operation::kAllReduce, tensors[0]);
    return LeftAtItsEnd(inner_->allreduce(tensors, options), ticket, tensors[0]);
  }

  Pending allgather(std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
                    const c10d::AllgatherOptions& options) override {
    const FlightTicket ticket = Enter(Operation::kAllGather, inputs[0]);
    return LeftAtItsEnd(inner_->allgather(outputs, inputs, options), ticket, inputs[0]);
  }

  Pending _allgather_base(at::Tensor& output, at::Tensor& input,
                          const c10d::AllgatherOptions& options) override {
    const FlightTicket ticket = Enter(Operation::kAllGather, input);
    return LeftAtItsEnd(inner_->_allgather_base(output, input, options), ticket, input);
  }

  Pending alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& to,
                        std::vector<std::int64_t>& from,
                        const c10d::AllToAllOptions& options) override {
    const FlightTicket ticket = Enter(Operation::kReduceScatter, input);
    return LeftAtItsEnd(inner_->alltoall_base(output, input, to, from, options), ticket, input);
  }

  Pending _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override {
    const FlightTicket ticket = Enter(Operation::kReduceScatter, input);
    return LeftAtItsEnd(inner_->_reduce_scatter_base(output, input, options), ticket, input);
  }

  Pending send(std::vector<at::Tensor>& tensors, int to, int tag) override {
    const FlightTicket ticket =
        meter_->EnterMessage(Operation::kSend, to, absl::StrCat("tag ", tag), tensors[0].nbytes());
    // The argument is what is sent.
    Count(Operation::kSend, tensors[0], static_cast<std::int64_t>(tensors[0].nbytes()));
    return Message(inner_->send(tensors, to, tag), ticket, tensors[0]);
  }

  Pending recv(std::vector<at::Tensor>& tensors, int from, int tag) override {
    const FlightTicket ticket = meter_->EnterMessage(
        Operation::kReceive, from, absl::StrCat("tag ", tag), tensors[0].nbytes());
    Count(Operation::kReceive, tensors[0], 0);
    return Message(inner_->recv(tensors, from, tag), ticket, tensors[0]);
  }

 private:
  FlightTicket Enter(Operation operation, const at::Tensor& tensor) const {
    Count(operation, tensor, std::nullopt);
    return meter_->flights.Enter(part_, operation, tensor.data_ptr(), tensor.nbytes());
  }

  void Count(Operation operation, const at::Tensor& tensor,
             std::optional<std::int64_t> counted) const {
    if (!use_) return;
    // Gradients are real numbers, possibly sent as bytes; everything else is the Reducer's
    // coordination.
    const bool talk = *use_ == Use::kGradients && tensor.scalar_type() != at::kByte &&
                      !tensor.is_floating_point();
    meter_->traffic.Add(talk ? Use::kOther : *use_, operation,
                        static_cast<std::int64_t>(tensor.nbytes()), counted);
  }

  Pending Message(Pending work, FlightTicket ticket, const at::Tensor& tensor) const {
    if (tensor.is_cpu()) {
      return c10::make_intrusive<RecordedMessage>(std::move(work), meter_, ticket);
    }
    AskUntilItsEnd(work, ticket, tensor.device());
    return work;
  }

  // On the CPU, the work's future reports its end on c10d's thread, before any waiter wakes up. On
  // a GPU the future is complete once the work has been put on a stream (ProcessGroupNCCL.cpp,
  // "markCompleted"), and wait() returns at that point, too: only polling the stream's events shows
  // when it is done.
  Pending LeftAtItsEnd(Pending work, FlightTicket ticket, const at::Tensor& tensor) const {
    if (!meter_->flights.recorded()) return work;
    if (!tensor.is_cpu()) {
      AskUntilItsEnd(work, ticket, tensor.device());
      return work;
    }
    work->getFuture()->addCallback([meter = meter_, ticket](c10::ivalue::Future& future) {
      if (!future.hasError()) meter->flights.Leave(ticket);
    });
    return work;
  }

  // Keeps the work, and so its tensors, until polling has found it done: at most 50 ms longer than
  // needed.
  void AskUntilItsEnd(const Pending& work, FlightTicket ticket, const at::Device& device) const {
    meter_->flights.Watch(ticket, [work, device] {
      // Otherwise a thread that uses CUDA allocates memory on the first GPU.
      c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
      if (!work->isCompleted()) return FlightState::kUnderWay;
      return work->exception() ? FlightState::kFailed : FlightState::kDone;
    });
  }

  const c10::intrusive_ptr<c10d::ProcessGroup> inner_;
  const std::shared_ptr<GroupMeter> meter_;
  const FlightPart part_;
  const std::optional<Use> use_;
};

}  // namespace

FlightTicket GroupMeter::EnterMessage(Operation operation, int other, const std::string& what,
                                      std::size_t bytes) {
  return flights.EnterPair(operation,
                           absl::StrCat(operation == Operation::kSend ? "to rank " : "from rank ",
                                        members[static_cast<std::size_t>(other)], ", ", what),
                           bytes);
}

c10::intrusive_ptr<c10d::ProcessGroup> Recorded(c10::intrusive_ptr<c10d::ProcessGroup> inner,
                                                std::shared_ptr<GroupMeter> meter, FlightPart part,
                                                std::optional<Use> use) {
  return c10::make_intrusive<RecordedGroup>(std::move(inner), std::move(meter), part, use);
}

void SumOver(c10d::ProcessGroup& group, at::Tensor& tensor) {
  const bool widen = tensor.is_cpu() && tensor.is_floating_point() && tensor.element_size() < 4;
  std::vector<at::Tensor> tensors = {widen ? tensor.to(at::kFloat) : tensor};
  group.allreduce(tensors)->wait();
  if (widen) tensor.copy_(tensors[0]);
}

}  // namespace muster::trainer
