// Where a flag may have different values.
#pragma once

#include "trainer/app/options/setting.h"

namespace muster::trainer {

struct SettingRule {
  // On the ranks of one run.
  enum class Ranks {
    kSame,   // the same value on all ranks
    kGiven,  // given on all ranks or on none; the value may differ, such as a path on another host
    kFree,   // any value
  };
  // In a checkpoint and in a run that resumes from it.
  enum class Resume {
    kSame,  // another value is refused
    kSaid,  // another value may change what is learned, so it is reported
    kFree,  // another value does not change what is learned
  };
  Ranks ranks;
  Resume resume;
};

// Returns the rule for a flag: its own, or else that of its group. The flags that determine a
// model's parameters are compared separately, by ModelFlags(), and the seed by TrainState.
SettingRule RuleOf(const Setting& setting);

}  // namespace muster::trainer
