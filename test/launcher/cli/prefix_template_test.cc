#include "launcher/cli/launch_config.h"

#include <gtest/gtest.h>

namespace muster::launcher {
namespace {

TEST(PrefixTemplateTest, NamesAreReplacedAsPythonsTemplateDoes) {
  const std::map<std::string, std::string> values = {{"rank", "3"}, {"role_name", "r"}};
  const std::pair<const char*, const char*> cases[] = {
      {"[${role_name}${rank}]:", "[r3]:"},
      {"$rank $ranks", "3 ${ranks}"},
      {"$$rank", "$rank"},
      {"${rank", "${rank"},
      {"${}", "${}"},
      {"$", "$"},
      {"$1", "$1"},
      {"${pid}|$time|", "${pid}|${time}|"},
      {"", ""},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(ExpandTemplate(text, values), expected) << text;
  }
}

}  // namespace
}  // namespace muster::launcher
