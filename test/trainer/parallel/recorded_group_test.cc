// When c10d's operations count as left. NCCL's need a GPU; this uses a fake group whose work ends
// when the test says so, like NCCL's, with tensors that are not on the CPU ("meta", without
// memory).
#include "trainer/comm/group_facts.h"

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "trainer/comm/host/operation_log.h"
#include "trainer/comm/host/shm_segment.h"
#include "trainer/comm/host/transport.h"

namespace muster::trainer {
namespace {

// Its future is complete at once and wait() does not wait, as on a GPU. End() ends it.
class StreamWork : public c10d::Work {
 public:
  StreamWork() { future_->markCompleted(); }

  void End(std::exception_ptr error = nullptr) {
    error_ = error;
    ended_ = true;
  }

  bool isCompleted() override { return ended_; }
  std::exception_ptr exception() const override { return ended_ ? error_ : nullptr; }
  bool wait(std::chrono::milliseconds) override { return true; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

 private:
  std::atomic<bool> ended_ = false;
  std::exception_ptr error_;
  c10::intrusive_ptr<c10::ivalue::Future> future_ =
      c10::make_intrusive<c10::ivalue::Future>(c10::NoneType::get());
};

// With a future that reports its end, like Gloo's.
class ThreadWork : public c10d::Work {
 public:
  void End() { future_->markCompleted(); }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

 private:
  c10::intrusive_ptr<c10::ivalue::Future> future_ =
      c10::make_intrusive<c10::ivalue::Future>(c10::NoneType::get());
};

// All of its operations are one work.
class OneWork : public c10d::ProcessGroup {
 public:
  explicit OneWork(c10::intrusive_ptr<c10d::Work> work)
      : c10d::ProcessGroup(0, 2), work_(std::move(work)) {}
  const std::string getBackendName() const override { return "one work"; }
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>&,
                                           const c10d::AllreduceOptions&) override {
    return work_;
  }
  c10::intrusive_ptr<c10d::Work> _allgather_base(at::Tensor&, at::Tensor&,
                                                 const c10d::AllgatherOptions&) override {
    return work_;
  }
  c10::intrusive_ptr<c10d::Work> _reduce_scatter_base(at::Tensor&, at::Tensor&,
                                                      const c10d::ReduceScatterOptions&) override {
    return work_;
  }
  c10::intrusive_ptr<c10d::Work> recv(std::vector<at::Tensor>&, int, int) override { return work_; }

 private:
  const c10::intrusive_ptr<c10d::Work> work_;
};

class RecordedGroupTest : public testing::Test {
 protected:
  RecordedGroupTest() {
    facts_.members = {0, 1};
    facts_.recorder = &recorder_;
    meter_ = std::make_shared<GroupMeter>(facts_);
  }
  c10::intrusive_ptr<c10d::ProcessGroup> Around(c10::intrusive_ptr<c10d::Work> work) const {
    return Recorded(c10::make_intrusive<OneWork>(std::move(work)), meter_, FlightPart::kAll,
                    Use::kGradients);
  }
  static std::vector<at::Tensor> On(at::DeviceType device) {
    return {at::empty({2}, at::device(device).dtype(at::kFloat))};
  }

  FlightRecorder recorder_{ShmSegment::Create(FlightRecorder::SegmentBytes(1)).value(),
                           LayOutHosts({"host"}, 0), 0, std::nullopt};
  GroupFacts facts_;
  std::shared_ptr<GroupMeter> meter_;
};

TEST_F(RecordedGroupTest, WorkOnADeviceIsLeftWhenItIsDoneAndNotWhenItIsQueued) {
  const auto work = c10::make_intrusive<StreamWork>();
  std::vector<at::Tensor> tensors = On(at::kMeta);
  Around(work)->allreduce(tensors)->wait();
  EXPECT_EQ(recorder_.Explain().find("rank 0 waits in all-reduce 1 (8 bytes) for "), 0u);
  EXPECT_NE(recorder_.Explain(), "") << "asked again, it is still there";
  work->End();
  EXPECT_EQ(recorder_.Explain(), "");
}

// ZeRO over NCCL.
TEST_F(RecordedGroupTest, WhatADeviceSharesIsRecordedAndCounted) {
  at::Tensor part = On(at::kMeta)[0];
  at::Tensor whole = at::empty({4}, part.options());
  for (const bool gathers : {false, true}) {
    const auto work = c10::make_intrusive<StreamWork>();
    const auto group = Around(work);
    (gathers ? group->_allgather_base(whole, part) : group->_reduce_scatter_base(part, whole))
        ->wait();
    const std::string place = gathers ? "all-gather 2 (8 bytes)" : "reduce-scatter 1 (16 bytes)";
    EXPECT_EQ(recorder_.Explain().find("rank 0 waits in " + place + " for "), 0u)
        << recorder_.Explain();
    work->End();
    EXPECT_EQ(recorder_.Explain(), "");
  }
  // Of two ranks each sends half of the whole, and its part to the other one.
  EXPECT_EQ(meter_->traffic.Total(Use::kGradients, false).formula_bytes, 16);
}

TEST_F(RecordedGroupTest, AMessageOfADeviceIsLeftWhenItIsDone) {
  const auto work = c10::make_intrusive<StreamWork>();
  std::vector<at::Tensor> tensors = On(at::kMeta);
  Around(work)->recv(tensors, 1, 7)->wait();
  EXPECT_EQ(recorder_.Explain().find("rank 0 waits in receive 1 (from rank 1, tag 7) for "), 0u);
  work->End();
  EXPECT_EQ(recorder_.Explain(), "");
}

TEST_F(RecordedGroupTest, WorkOnADeviceThatFailsIsNotLeft) {
  const auto work = c10::make_intrusive<StreamWork>();
  std::vector<at::Tensor> tensors = On(at::kMeta);
  Around(work)->allreduce(tensors);
  work->End(std::make_exception_ptr(std::runtime_error("NCCL: the peer is gone")));
  EXPECT_NE(recorder_.Explain(), "");
}

TEST_F(RecordedGroupTest, WorkOnTheCpuIsLeftWhenItsFutureIsComplete) {
  const auto work = c10::make_intrusive<ThreadWork>();
  std::vector<at::Tensor> tensors = On(at::kCPU);
  Around(work)->allreduce(tensors);
  EXPECT_NE(recorder_.Explain(), "");
  work->End();
  EXPECT_EQ(recorder_.Explain(), "");
}

}  // namespace
}  // namespace muster::trainer
