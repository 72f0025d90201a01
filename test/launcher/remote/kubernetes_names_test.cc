// Kubernetes' syntax of names and quantities.
#include "launcher/remote/kubernetes_names.h"

#include <string>

#include <gtest/gtest.h>

namespace muster::launcher {
namespace {

TEST(KubernetesNamesTest, Labels) {
  for (const char* label : {"a", "7", "gpu-node-7"}) EXPECT_TRUE(IsDnsLabel(label)) << label;
  for (const char* none : {"", "-a", "a-", "A", "a.b", "a_b", "a b", "\xc3\xa4"}) {
    EXPECT_FALSE(IsDnsLabel(none)) << none;
  }
  EXPECT_TRUE(IsDnsLabel(std::string(63, 'a')));
  EXPECT_FALSE(IsDnsLabel(std::string(64, 'a')));
  EXPECT_TRUE(IsServiceName("a7"));
  EXPECT_FALSE(IsServiceName("7a"));
}

TEST(KubernetesNamesTest, NamesWithDots) {
  EXPECT_TRUE(IsDnsName("cluster.local"));
  EXPECT_TRUE(IsDnsName("token"));
  for (const char* none : {"", ".", "a.", ".a", "a..b", "a.B"}) {
    EXPECT_FALSE(IsDnsName(none)) << none;
  }
  EXPECT_TRUE(IsExtendedResource("nvidia.com/gpu"));
  EXPECT_TRUE(IsExtendedResource("nvidia.com/mig-1g.5gb"));
  for (const char* none : {"gpu", "nvidia.com/", "/gpu", "a/b/c", "nvidia.com/g pu"}) {
    EXPECT_FALSE(IsExtendedResource(none)) << none;
  }
}

TEST(KubernetesNamesTest, Amounts) {
  for (const char* amount : {"4", "0.5", "500m", "16Gi", "1.5T"}) {
    EXPECT_TRUE(IsQuantity(amount)) << amount;
  }
  for (const char* none : {"", "Gi", "-1", "1.", ".5", "16GiB", "16 Gi", "1e400s", "4,5"}) {
    EXPECT_FALSE(IsQuantity(none)) << none;
  }
}

TEST(KubernetesNamesTest, Variables) {
  EXPECT_TRUE(IsVariableName("NCCL_DEBUG"));
  for (const char* none : {"", "7A", "A B", "A=", "A\n"}) EXPECT_FALSE(IsVariableName(none));
}

// In Kubernetes $(NAME) means a variable's value, and $$ a dollar sign.
TEST(KubernetesNamesTest, ADollarSignStaysOne) {
  EXPECT_EQ(WithoutExpansion("$(HOME) costs 5$"), "$$(HOME) costs 5$$");
}

}  // namespace
}  // namespace muster::launcher
