#include "trainer/runtime/trace_recorder.h"

#include <atomic>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/requires_grad.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

std::string Written(const TraceBuffer& buffer) {
  const std::string path = testing::TempDir() + "/recorded";
  EXPECT_TRUE(buffer.Write(path, 0).ok());
  std::ifstream file(path);
  return std::string{std::istreambuf_iterator<char>(file), {}};
}

TEST(TraceRecorderTest, SeesForwardBackwardAndScopesWhileItExists) {
  TraceBuffer buffer(1000);
  const at::Tensor weight = at::ones({4, 4}).requires_grad_();
  {
    const TraceRecorder recorder(buffer);
    RECORD_USER_SCOPE("my scope");
    at::mm(weight, weight).sum().backward();
  }
  const std::size_t recorded = buffer.size();
  at::mm(weight, weight);
  EXPECT_EQ(buffer.size(), recorded) << "nothing is recorded any more";

  const std::string trace = Written(buffer);
  for (const char* name : {"aten::mm", "aten::sum", "MmBackward0", "my scope"}) {
    EXPECT_NE(trace.find(name), std::string::npos) << name;
  }
}

// With --trace and several loader threads the process sometimes crashed at the end of the last
// traced step: a loader's operator had begun before that, and ended after.
TEST(TraceRecorderTest, AnOperatorThatOutlastsItIsLeftOut) {
  TraceBuffer buffer(1000);
  {
    auto recorder = std::make_unique<TraceRecorder>(buffer);
    RECORD_USER_SCOPE("outlasts it");
    recorder.reset();
  }
  EXPECT_EQ(Written(buffer).find("outlasts it"), std::string::npos);
}

TEST(TraceRecorderTest, ComesAndGoesWhileOtherThreadsCompute) {
  TraceBuffer buffer(1000);
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&done] {
      const at::Tensor ones = at::ones({2, 2});
      while (!done) at::mm(ones, ones);
    });
  }
  for (int i = 0; i < 200; ++i) {
    const TraceRecorder recorder(buffer);
    at::ones({2, 2});
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(buffer.size(), 0u);
}

}  // namespace
}  // namespace muster::trainer
