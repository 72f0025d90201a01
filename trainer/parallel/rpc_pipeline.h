// A pipeline in which one rank, the master, calls functions of the others.
#pragma once

#include <memory>

#include "trainer/comm/group.h"
#include "trainer/parallel/pipeline_engine.h"

namespace muster::trainer {

// One rank of a pipeline of the members of `group`, which have one part of the model each, in
// order. The first member is the master: it runs a micro-batch through its own part, calls the next
// member for its part, receives the outputs, and passes them to the member after that. It issues
// the calls for micro-batches without waiting, so that all members work; when all forwards are
// done, it calls for the backward passes from the last member to the second, and runs backward
// through its own part. This is GPipe's order: Huang et al., "GPipe", NeurIPS 2019. As in
// torch.distributed.rpc, calls arrive on separate threads; the other members execute them on the
// thread that is in Train() or Evaluate(), in GPipe's order, whatever the order of arrival.
//
// Messages that PipelineEngine's members send directly pass through the master here: p ranks send
// (2p-3)/(p-1) times as much. A failure on a member is reported to the master, which throws it with
// that member's message; members that wait for the master throw when it has ended or the timeout
// has expired.
class RpcPipeline : public PipelineDriver {
 public:
  // Blocks until all members have arrived; throws what c10d throws if they do not. `group` must
  // outlive this, and be on CPUs. Have its members meet in an operation of the group before this is
  // destroyed.
  explicit RpcPipeline(Group& group);
  ~RpcPipeline() override;
  RpcPipeline(const RpcPipeline&) = delete;
  RpcPipeline& operator=(const RpcPipeline&) = delete;

  void Train(const PipelineStep& step) override;
  void Evaluate(const PipelineStep& step) override;
  const PipelineTimes& times() const override { return times_; }

 private:
  class Mail;  // defined in the .cc
  struct Pass;
  struct Task;

  void Play(const PipelineStep& step, bool training);
  void Lead(const PipelineStep& step, bool training);
  void Serve(const PipelineStep& step, bool training);
  // Has member `member` run `task`, and the following ones with its answer.
  void Ask(const Task& task, int member, const at::Tensor& tensor);

  Group& group_;
  const std::unique_ptr<Mail> mail_;
  PipelineTimes times_;
  std::unique_ptr<RemoteCalls> calls_;  // destroyed first: it writes to the mail
};

}  // namespace muster::trainer
