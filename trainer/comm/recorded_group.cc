#include "trainer/comm/recorded_group.h"

#include <string>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace muster::trainer {
namespace {

class RecordedGroup : public c10d::ProcessGroup {
 public:
  RecordedGroup(c10::intrusive_ptr<c10d::ProcessGroup> inner, std::shared_ptr<GroupFlights> flights,
                FlightPart part)
      : c10d::ProcessGroup(inner->getRank(), inner->getSize()),
        inner_(std::move(inner)),
        flights_(std::move(flights)),
        part_(part) {}

  // Not "gloo": c10d::Logger takes whatever is called that for a ProcessGroupGloo.
  const std::string getBackendName() const override {
    return "recorded " + inner_->getBackendName();
  }

  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors,
                                           const c10d::BroadcastOptions& options) override {
    const std::uint64_t ticket = Enter(Operation::kBroadcast, tensors[0]);
    return LeftAtItsEnd(inner_->broadcast(tensors, options), ticket);
  }

  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions& options) override {
    const std::uint64_t ticket = Enter(Operation::kAllReduce, tensors[0]);
    return LeftAtItsEnd(inner_->allreduce(tensors, options), ticket);
  }

  c10::intrusive_ptr<c10d::Work> allgather(std::vector<std::vector<at::Tensor>>& outputs,
                                           std::vector<at::Tensor>& inputs,
                                           const c10d::AllgatherOptions& options) override {
    const std::uint64_t ticket = Enter(Operation::kAllGather, inputs[0]);
    return LeftAtItsEnd(inner_->allgather(outputs, inputs, options), ticket);
  }

 private:
  std::uint64_t Enter(Operation operation, const at::Tensor& tensor) const {
    return flights_->Enter(part_, operation, tensor.data_ptr(), tensor.nbytes());
  }

  // In c10d's thread, before anybody who waits is woken up.
  c10::intrusive_ptr<c10d::Work> LeftAtItsEnd(c10::intrusive_ptr<c10d::Work> work,
                                              std::uint64_t ticket) const {
    work->getFuture()->addCallback([flights = flights_, ticket](c10::ivalue::Future& future) {
      if (!future.hasError()) flights->Leave(ticket);
    });
    return work;
  }

  const c10::intrusive_ptr<c10d::ProcessGroup> inner_;
  const std::shared_ptr<GroupFlights> flights_;
  const FlightPart part_;
};

}  // namespace

c10::intrusive_ptr<c10d::ProcessGroup> Recorded(c10::intrusive_ptr<c10d::ProcessGroup> inner,
                                                std::shared_ptr<GroupFlights> flights,
                                                FlightPart part) {
  return c10::make_intrusive<RecordedGroup>(std::move(inner), std::move(flights), part);
}

}  // namespace muster::trainer
