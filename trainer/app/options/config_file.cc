#include "trainer/app/options/config_file.h"

#include <CLI/CLI.hpp>

#include <optional>
#include <sstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace muster::trainer {
namespace {

// `line` up to a '#' that is not in quotes. A quote that is never closed is an apostrophe.
std::string WithoutComment(const std::string& line) {
  char quote = '\0';
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '#') {
      return line.substr(0, i);
    } else if ((c == '"' || c == '\'') && line.find(c, i + 1) != std::string::npos) {
      quote = c;
    }
  }
  return line;
}

class QuoteAwareFormat : public CLI::ConfigBase {
 public:
  QuoteAwareFormat() { comment('\0'); }

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    std::stringstream lines;
    for (std::string line; std::getline(input, line);) lines << WithoutComment(line) << '\n';
    return CLI::ConfigBase::from_config(lines);
  }
};

std::optional<std::string> InFile(const std::string& value);

// A value of several lines is a list.
std::optional<std::string> ListInFile(const std::string& value) {
  std::vector<std::string> items;
  for (const absl::string_view line : absl::StrSplit(value, '\n')) {
    std::optional<std::string> item = InFile(std::string(line));
    if (!item) return std::nullopt;
    items.push_back(*std::move(item));
  }
  return absl::StrCat("[", absl::StrJoin(items, ", "), "]");
}

// `value` as the file has it; nullopt when it has no form there.
std::optional<std::string> InFile(const std::string& value) {
  double number = 0;
  if (value == "true" || value == "false" || absl::SimpleAtod(value, &number)) return value;
  if (value.find('\n') != std::string::npos) return ListInFile(value);
  for (const char* quote : {"\"", "'"}) {
    if (value.find(quote) == std::string::npos) return absl::StrCat(quote, value, quote);
  }
  return std::nullopt;
}

}  // namespace

std::shared_ptr<CLI::Config> ConfigFormat() {
  return std::make_shared<QuoteAwareFormat>();
}

std::string ConfigText(const std::vector<Setting>& settings) {
  std::string text = "# The options of a run of muster-train, for --config.\n";
  std::string group;
  for (const Setting& setting : settings) {
    if (setting.value.empty()) continue;
    if (setting.group != group) absl::StrAppend(&text, "\n# ", setting.group, "\n");
    group = setting.group;
    const std::string name = setting.flag.substr(2);  // without the dashes
    if (const auto value = InFile(setting.value)) {
      absl::StrAppend(&text, name, " = ", *value, "\n");
    } else {
      absl::StrAppend(&text, "# ", name, ": its value cannot be written here\n");
    }
  }
  return text;
}

}  // namespace muster::trainer
