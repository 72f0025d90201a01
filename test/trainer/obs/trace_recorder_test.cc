#include "trainer/obs/trace_recorder.h"

#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>
#include <torch/torch.h>

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
  const at::Tensor weight = torch::ones({4, 4}, torch::requires_grad());
  {
    const TraceRecorder recorder(buffer);
    RECORD_USER_SCOPE("my scope");
    torch::mm(weight, weight).sum().backward();
  }
  const std::size_t recorded = buffer.size();
  torch::mm(weight, weight);
  EXPECT_EQ(buffer.size(), recorded) << "nothing is recorded any more";

  const std::string trace = Written(buffer);
  for (const char* name : {"aten::mm", "aten::sum", "MmBackward0", "my scope"}) {
    EXPECT_NE(trace.find(name), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace muster::trainer
