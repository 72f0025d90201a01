#include "trainer/telemetry/trace_recorder.h"

#include <fstream>
#include <iterator>
#include <string>

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

}  // namespace
}  // namespace muster::trainer
