// The table of permissions, compared with the services in their .proto files.
#include "rendezvous/fronts/permissions.h"

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

TEST(PermissionsTest, EveryCallOfEveryServiceIsInTheTableAndNothingElse) {
  std::set<std::string> declared, listed;
  for (const char* file : {"proto/rendezvous.proto", "proto/store.proto", "proto/tunnel.proto"}) {
    std::ifstream text(file);
    ASSERT_TRUE(text) << file;
    std::string package, service;
    for (std::string line; std::getline(text, line);) {
      std::istringstream words(line);
      std::string keyword, name;
      words >> keyword >> name;
      name = name.substr(0, name.find_first_of(";({ "));
      if (keyword == "package") package = name;
      if (keyword == "service") service = name;
      if (keyword == "rpc") declared.insert(package + "." + service + "/" + name);
    }
  }
  for (const Permission& line : kPermissions) listed.insert(std::string(line.method));
  EXPECT_EQ(declared, listed);
}

TEST(PermissionsTest, EveryRoleHasItsOwnRights) {
  for (const Permission& line : kPermissions) {
    const bool looks =
        line.rpc == Rpc::kDescribe || line.rpc == Rpc::kList || line.rpc == Rpc::kWatch;
    EXPECT_EQ(IsAllowed(Role::kAgent, line.rpc), line.rpc != Rpc::kReadLog) << line.method;
    const bool agents_own =
        line.rpc == Rpc::kAttend || line.rpc == Rpc::kDeliverLog || line.rpc == Rpc::kTunnelCarry;
    EXPECT_EQ(IsAllowed(Role::kTool, line.rpc), !agents_own) << line.method;
    EXPECT_EQ(IsAllowed(Role::kMetrics, line.rpc), looks) << line.method;
    EXPECT_FALSE(IsAllowed(Role::kDaemon, line.rpc)) << line.method;
  }
}

}  // namespace
}  // namespace muster::rendezvous
