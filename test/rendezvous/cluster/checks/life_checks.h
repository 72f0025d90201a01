// Checks that the lives of a job are kept apart: no agent that has run in one life runs in the next
// (I7).
#pragma once

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rendezvous/core/values/types.h"
#include "test/rendezvous/cluster/checks/violations.h"

namespace muster::rendezvous {

class LifeChecks {
 public:
  explicit LifeChecks(Violations& violations) : violations_(violations) {}

  // A node, that is one agent process, is about to start workers.
  void OnWorkersStart(const std::string& node, const Assignment& assignment) {
    const auto [life, is_new] = ran_.try_emplace({node, assignment.run_id}, assignment.incarnation);
    if (is_new || life->second == assignment.incarnation) return;
    violations_.Add(Check::kNextLife, absl::StrCat("job ", assignment.run_id, ": node ", node,
                                                   " has run in incarnation ", life->second,
                                                   ", and runs in ", assignment.incarnation));
  }

 private:
  Violations& violations_;
  std::map<std::pair<std::string, std::string>, Incarnation> ran_;  // by node and job
};

}  // namespace muster::rendezvous
