#include "trainer/app/options/setting_rule.h"

#include <map>
#include <string_view>

namespace muster::trainer {
namespace {

using Ranks = SettingRule::Ranks;
using Resume = SettingRule::Resume;
using Rules = std::map<std::string_view, SettingRule>;

const Rules& RulesOfGroups() {
  static const Rules kRules = {
      {"Data", {Ranks::kSame, Resume::kSaid}},
      {"Model", {Ranks::kSame, Resume::kSaid}},
      {"Training", {Ranks::kSame, Resume::kSaid}},
      {"Optimizer", {Ranks::kSame, Resume::kSaid}},
      // How gradients are exchanged only changes their rounding.
      {"Ranks", {Ranks::kSame, Resume::kFree}},
      // How a model is shared only changes rounding, and checkpoints are of the whole.
      {"Mesh", {Ranks::kSame, Resume::kFree}},
      // Ranks take part in each checkpoint.
      {"Checkpoints", {Ranks::kSame, Resume::kFree}},
      // Only rank 0 writes reports.
      {"Reports", {Ranks::kFree, Resume::kFree}},
  };
  return kRules;
}

const Rules& RulesOfFlags() {
  static const Rules kRules = {
      // A checkpoint's position, parameters and optimizer state are of no use with others.
      {"--dataset", {Ranks::kSame, Resume::kSame}},
      {"--target", {Ranks::kSame, Resume::kSame}},
      {"--dtype", {Ranks::kSame, Resume::kSame}},
      {"--algorithm", {Ranks::kSame, Resume::kSame}},
      {"--qat", {Ranks::kSame, Resume::kSame}},

      {"--data", {Ranks::kFree, Resume::kSaid}},
      {"--test-data", {Ranks::kFree, Resume::kSaid}},
      {"--tokenizer", {Ranks::kGiven, Resume::kSaid}},
      {"--loader-threads", {Ranks::kFree, Resume::kFree}},
      {"--threads", {Ranks::kFree, Resume::kFree}},
      {"--eval", {Ranks::kSame, Resume::kFree}},
      {"--recompute", {Ranks::kSame, Resume::kFree}},
      // A run that resumes goes on with the scale of its checkpoint.
      {"--loss-scale", {Ranks::kSame, Resume::kFree}},

      {"--timeout", {Ranks::kFree, Resume::kFree}},
      {"--sync-bn", {Ranks::kSame, Resume::kSaid}},
      {"--comm-hook", {Ranks::kSame, Resume::kSaid}},
      {"--broadcast-buffers", {Ranks::kSame, Resume::kSaid}},

      // Only rank 0 uses these.
      {"--checkpoint", {Ranks::kFree, Resume::kFree}},
      {"--export", {Ranks::kFree, Resume::kFree}},
      {"--keep", {Ranks::kFree, Resume::kFree}},
      {"--init-from", {Ranks::kFree, Resume::kFree}},
      {"--checkpoint-dir", {Ranks::kGiven, Resume::kFree}},

      // Ranks take part together in each report, and in the end of a trace.
      {"--report-every", {Ranks::kSame, Resume::kFree}},
      {"--trace", {Ranks::kGiven, Resume::kFree}},
  };
  return kRules;
}

}  // namespace

SettingRule RuleOf(const Setting& setting) {
  const auto own = RulesOfFlags().find(setting.flag);
  if (own != RulesOfFlags().end()) return own->second;
  return RulesOfGroups().at(setting.group);
}

}  // namespace muster::trainer
