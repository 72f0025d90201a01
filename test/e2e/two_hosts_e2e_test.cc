// Two machines with their own addresses and interfaces, simulated with network namespaces.
#include <string>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"

namespace muster::test {
namespace {

class TwoHostsTest : public E2eTest, public testing::WithParamInterface<const char*> {};

TEST_P(TwoHostsTest, WorkersOfTheSecondReachTheStoreOfTheFirstAndStrangersDoNot) {
  if (!Succeeds({"unshare", "--map-root-user", "--net", "unshare", "--net", "ip", "link"})) {
    GTEST_SKIP() << "this machine does not let us make network namespaces (unshare --net)";
  }
  if (!Succeeds({"/usr/bin/python3", "-c", ""})) GTEST_SKIP() << "there is no /usr/bin/python3";
  const std::string program =
      Write("worker", "#!/bin/sh\nexec /usr/bin/python3 test/e2e/count_at_store.py\n", 0755);

  Command hosts({"unshare", "--map-root-user", "--net", "sh", "test/e2e/two_hosts.sh", MusterPath(),
                 program, GetParam()},
                Environment());
  EXPECT_EQ(hosts.Wait(), 0) << hosts.err();
  EXPECT_EQ(
      hosts.out(),
      "rank 0 of 2, group rank 0, store at 10.99.0.1, Gloo on to_second\n"
      "rank 1 of 2, group rank 1, store at 10.99.0.1, Gloo on to_first, stranger turned away\n")
      << hosts.err();
  EXPECT_TRUE(Contains(hosts.err(), "the workers' store refused 1 connection"));
}

INSTANTIATE_TEST_SUITE_P(Meeting, TwoHostsTest, testing::Values("endpoint", "static"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace muster::test
