// A pipeline in which one rank, the master, calls functions of the others.
#pragma once

#include <memory>

#include "trainer/comm/group.h"
#include "trainer/parallel/pipeline_driver.h"

namespace muster::trainer {

// One rank of a pipeline of the members of `group`, which have a part of the model each, in their
// order. The first member is the master: it takes a micro-batch through its own part, has the next
// member take it through that one's, gets the outputs, and gives them to the member after that. It
// asks for the micro-batches one after the other without waiting, so that all members work; when
// all are through, it asks for the backward passes from the last member to the second, and goes
// backward through its own part. This is GPipe's order: Huang et al., "GPipe", NeurIPS 2019. As in
// torch.distributed.rpc, calls come on threads of their own; the other members carry them out on
// the thread that is in Train() or Evaluate(), in GPipe's order, whichever comes first.
//
// What two members of PipelineEngine say to each other directly passes through the master here: p
// ranks send (2p-3)/(p-1) times as much. The pieces of a step that has failed on a member are told
// to the master, which throws them with that member's words; those that wait for a master throw
// when it has ended or the timeout has expired.
class RpcPipeline : public PipelineDriver {
 public:
  // Blocks until all members have come; throws what c10d throws if they do not. `group` must
  // outlive this, and be on CPUs. Let its members meet in an operation of the group before this is
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
  // Has member `member` do `task`, and those after it with what it answers.
  void Ask(const Task& task, int member, const at::Tensor& tensor);

  Group& group_;
  const std::unique_ptr<Mail> mail_;
  PipelineTimes times_;
  std::unique_ptr<RemoteCalls> calls_;  // ends first: it puts into the mail
};

}  // namespace muster::trainer
