// The table of who may call what, beside the services as their .proto files have them.
#include "rendezvous/fronts/permissions.h"

#include <fstream>
#include <regex>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

TEST(PermissionsTest, EveryCallOfEveryServiceIsInTheTableAndNothingElse) {
  std::set<std::string> declared, listed;
  for (const char* file : {"proto/rendezvous.proto", "proto/store.proto"}) {
    std::ifstream text(file);
    ASSERT_TRUE(text) << file;
    std::string package, service;
    const std::regex pattern("^ *(package|service|rpc) +([A-Za-z0-9_.]+)");
    for (std::string line; std::getline(text, line);) {
      std::smatch match;
      if (!std::regex_search(line, match, pattern)) continue;
      if (match[1] == "package") package = match[2];
      if (match[1] == "service") service = match[2];
      if (match[1] == "rpc") declared.insert(package + "." + service + "/" + match[2].str());
    }
  }
  for (const Permission& line : kPermissions) listed.insert(std::string(line.method));
  EXPECT_EQ(declared, listed);
}

TEST(PermissionsTest, EveryRoleHasItsOwnRights) {
  for (const Permission& line : kPermissions) {
    const bool looks = line.rpc == Rpc::kDescribe || line.rpc == Rpc::kList;
    EXPECT_TRUE(IsAllowed(Role::kAgent, line.rpc)) << line.method;
    EXPECT_EQ(IsAllowed(Role::kTool, line.rpc), line.rpc != Rpc::kAttend) << line.method;
    EXPECT_EQ(IsAllowed(Role::kMetrics, line.rpc), looks) << line.method;
    EXPECT_FALSE(IsAllowed(Role::kDaemon, line.rpc)) << line.method;
  }
}

}  // namespace
}  // namespace muster::rendezvous
