// Two machines with addresses and interfaces of their own, as network namespaces.
#include <string>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"

namespace muster::test {
namespace {

class TwoHostsTest : public E2eTest {};

TEST_F(TwoHostsTest, WorkersOfTheSecondHostReachTheFirst) {
  if (!Succeeds({"unshare", "--map-root-user", "--net", "unshare", "--net", "ip", "link"})) {
    GTEST_SKIP() << "this machine does not let us make network namespaces (unshare --net)";
  }
  if (!Succeeds({"/usr/bin/python3", "-c", ""})) GTEST_SKIP() << "there is no /usr/bin/python3";
  const std::string program =
      Write("worker", "#!/bin/sh\nexec /usr/bin/python3 test/e2e/meet_at_master.py\n", 0755);

  Command hosts(
      {"unshare", "--map-root-user", "--net", "sh", "test/e2e/two_hosts.sh", MusterPath(), program},
      {mark(), "TMPDIR=" + Path("")});
  EXPECT_EQ(hosts.Wait(), 0) << hosts.err();
  EXPECT_EQ(hosts.out(),
            "rank 0 of 2, group rank 0, master 10.99.0.1: hello from rank 1\n"
            "rank 1 of 2, group rank 1, master 10.99.0.1: hello from rank 1\n")
      << hosts.err();
}

}  // namespace
}  // namespace muster::test
