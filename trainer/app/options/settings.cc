#include "trainer/app/options/settings.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <map>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

#include "trainer/app/options/command_flags.h"

namespace muster::trainer {

std::string SettingText(const std::string& value) {
  return value;
}

std::string SettingText(bool value) {
  return value ? "true" : "false";
}

std::string SettingText(double value) {
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return std::string(text.data(), end);
}

std::string SettingText(const std::vector<std::string>& values) {
  return absl::StrJoin(values, "\n");
}

void SettingSource::Add(std::string group, std::string flag, std::function<std::string()> read,
                        bool list) {
  Setting setting{
      .group = std::move(group), .flag = std::move(flag), .value = read(), .list = list};
  setting.standard = setting.value;
  const auto same = [&setting](const Entry& entry) {
    return entry.at_first.group == setting.group;
  };
  const auto last = std::find_if(entries_.rbegin(), entries_.rend(), same);
  entries_.insert(last == entries_.rend() ? entries_.end() : last.base(),
                  {std::move(setting), std::move(read)});
}

std::vector<Setting> SettingSource::Read() const {
  std::vector<Setting> settings;
  for (const Entry& entry : entries_) {
    settings.push_back(entry.at_first);
    settings.back().value = entry.read();
  }
  return settings;
}

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
      // How gradients are exchanged affects only rounding.
      {"Ranks", {Ranks::kSame, Resume::kFree}},
      // How a model is shared affects only rounding, and checkpoints contain the whole model.
      {"Mesh", {Ranks::kSame, Resume::kFree}},
      // All ranks take part in each checkpoint.
      {"Checkpoints", {Ranks::kSame, Resume::kFree}},
      // Only rank 0 writes reports.
      {"Reports", {Ranks::kFree, Resume::kFree}},
  };
  return kRules;
}

const Rules& RulesOfFlags() {
  static const Rules kRules = {
      // With others, a checkpoint's position, parameters and optimizer state are useless.
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
      // A run that resumes continues with its checkpoint's scale.
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

      // Reports, and the end of a trace, involve all ranks.
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

namespace {

// A placeholder for a quoted string while CLI11's reader, which would split it, parses the line.
constexpr char kMark = '\x01';

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool BeginsValue(const std::string& line, std::size_t at) {
  return at == 0 || absl::StrContains(" \t=[,", line.substr(at - 1, 1));
}

bool EndsValue(const std::string& line, std::size_t after) {
  return after == line.size() || absl::StrContains(" \t\r,]#", line.substr(after, 1));
}

// The position of the quote that closes the string opened at `open`; npos if there is none.
std::size_t Closing(const std::string& line, std::size_t open) {
  const char quote = line[open];
  for (std::size_t i = open + 1; i < line.size(); ++i) {
    if (line[i] == '\\' && quote == '"') {
      ++i;
    } else if (line[i] == quote && EndsValue(line, i + 1)) {
      return i;
    }
  }
  return std::string::npos;
}

// The value of a TOML string, given with its quotes: resolves escapes in double quotes.
std::string Meaning(const std::string& text) {
  const std::string inner = text.substr(1, text.size() - 2);
  std::string meaning;
  for (std::size_t i = 0; i < inner.size(); ++i) {
    constexpr std::string_view kLetters = "\"\\ntrbf";
    constexpr std::string_view kBytes = "\"\\\n\t\r\b\f";
    const bool escaped = inner[i] == '\\' && text[0] == '"' && i + 1 < inner.size();
    const std::size_t letter = escaped ? kLetters.find(inner[i + 1]) : std::string_view::npos;
    int code = 0;
    if (letter != std::string_view::npos) {
      meaning += kBytes[letter];
      ++i;
    } else if (escaped && inner[i + 1] == 'u' &&
               absl::SimpleHexAtoi(inner.substr(i + 2, 4), &code) && code < 0x80) {
      meaning += static_cast<char>(code);
      i += 5;
    } else {
      meaning += inner[i];
    }
  }
  return meaning;
}

// `line` up to a '#' outside quotes, with a placeholder for each string, which is added to
// `strings`. An unclosed quote is an apostrophe.
std::string WithMarks(const std::string& line, std::vector<std::string>& strings) {
  std::string marked;
  char quote = '\0';
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '#') {
      break;
    } else if (c == '"' || c == '\'') {
      const std::size_t end = BeginsValue(line, i) ? Closing(line, i) : std::string::npos;
      if (end != std::string::npos) {
        absl::StrAppend(&marked, std::string(1, kMark), strings.size());
        strings.push_back(Meaning(line.substr(i, end + 1 - i)));
        i = end;
        continue;
      }
      if (line.find(c, i + 1) != std::string::npos) quote = c;
    }
    marked += c;
  }
  return marked;
}

// The string behind the placeholder `mark`, or `mark` itself.
std::string Unmarked(const std::string& mark, const std::vector<std::string>& strings) {
  std::size_t number = 0;
  const bool known = !mark.empty() && mark[0] == kMark &&
                     absl::SimpleAtoi(mark.substr(1), &number) && number < strings.size();
  return known ? strings[number] : mark;
}

class QuoteAwareFormat : public CLI::ConfigBase {
 public:
  QuoteAwareFormat(const CLI::App& app, std::set<std::string> lists)
      : app_(app), lists_(std::move(lists)) {
    comment('\0');
  }

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    std::stringstream lines;
    std::vector<std::string> strings;
    std::map<std::string, int> lines_of_keys;
    int number = 0;
    for (std::string line; std::getline(input, line);) {
      ++number;
      if (strings.empty() && lines.tellp() == 0 && line.starts_with(kByteOrderMark)) {
        line.erase(0, kByteOrderMark.size());
      }
      const std::string marked = WithMarks(line, strings);
      const std::string key(absl::StripAsciiWhitespace(marked.substr(0, marked.find('='))));
      lines_of_keys.emplace(Unmarked(key, strings), number);
      lines << marked << '\n';
    }
    std::vector<CLI::ConfigItem> items = CLI::ConfigBase::from_config(lines);
    for (CLI::ConfigItem& item : items) {
      item.name = Unmarked(item.name, strings);
      CheckKey(item, lines_of_keys);
      for (std::string& text : item.inputs) text = Unmarked(text, strings);
      if (item.inputs.size() > 1 && !lists_.contains(item.name)) {
        // CLI11 would take the last one: 1 of 0,001.
        throw CLI::ConversionError(absl::StrCat("--config: ", item.name, " takes one value, not ",
                                                absl::StrJoin(item.inputs, " and "),
                                                "; a number has a point, and text quotes"));
      }
    }
    return items;
  }

 private:
  // Throws CLI11's error for a key that is not a flag; `lines` maps keys to lines.
  void CheckKey(const CLI::ConfigItem& item, const std::map<std::string, int>& lines) const {
    const bool section = item.name == "++" || item.name == "--";  // CLI11's marks for the beginning
                                                                  // and end of a section
    if (section || (item.parents.empty() && app_.get_option_no_throw("--" + item.name))) return;
    std::string sentence = absl::StrCat("--config ", app_.get_config_ptr()->as<std::string>());
    const auto line = lines.find(item.name);
    if (line != lines.end()) absl::StrAppend(&sentence, ", line ", line->second);
    if (item.parents.empty()) {
      const std::string meant = MeantName(item.name, FlagNames(app_));
      absl::StrAppend(&sentence, ": there is no flag ", item.name,
                      meant.empty() ? "" : absl::StrCat("; did you mean ", meant, "?"));
    } else {
      absl::StrAppend(&sentence, ": flags stand in no section; leave [", item.parents.front(),
                      "] out");
    }
    throw CLI::ConfigError(sentence, CLI::ExitCodes::ConfigError);
  }

  const CLI::App& app_;
  const std::set<std::string> lists_;
};

bool IsNumber(const std::string& value) {
  double number = 0;
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '+' || c == '-' || c == '.';
  };
  return std::all_of(value.begin(), value.end(), plain) && absl::SimpleAtod(value, &number);
}

// `value` in double quotes.
std::string Escaped(const std::string& value) {
  std::string text;
  for (const char c : value) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '\n') {
      text += "\\n";
    } else if (code < 0x20 || code == 0x7f) {
      absl::StrAppendFormat(&text, "\\u%04x", static_cast<int>(code));
    } else {
      if (c == '"' || c == '\\') text += '\\';
      text += c;
    }
  }
  return absl::StrCat("\"", text, "\"");
}

// `value` as written in the file.
std::string InFile(const std::string& value) {
  if (value == "true" || value == "false" || IsNumber(value)) return value;
  const std::string escaped = Escaped(value);
  // Without escapes where possible, for readability.
  const bool plain = escaped.size() == value.size() + 2;
  const bool has_control = std::any_of(value.begin(), value.end(),
                                       [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (plain || has_control || absl::StrContains(value, "'")) return escaped;
  return absl::StrCat("'", value, "'");
}

std::string InFile(const Setting& setting) {
  if (!setting.list || !absl::StrContains(setting.value, '\n')) return InFile(setting.value);
  std::vector<std::string> items;
  for (const absl::string_view line : absl::StrSplit(setting.value, '\n')) {
    items.push_back(InFile(std::string(line)));
  }
  return absl::StrCat("[", absl::StrJoin(items, ", "), "]");
}

}  // namespace

std::shared_ptr<CLI::Config> ConfigFormat(const CLI::App& app, std::set<std::string> lists) {
  return std::make_shared<QuoteAwareFormat>(app, std::move(lists));
}

std::string ConfigText(const std::vector<Setting>& settings, const std::string& program) {
  std::string text = absl::StrCat("# The options of a run of ", program, ", for --config.\n");
  std::string group;
  for (const Setting& setting : settings) {
    if (setting.value.empty() && setting.standard.empty()) continue;
    if (setting.group != group) absl::StrAppend(&text, "\n# ", setting.group, "\n");
    group = setting.group;
    const std::string name = setting.flag.substr(2);  // without the dashes
    absl::StrAppend(&text, name, " = ", InFile(setting), "\n");
  }
  return text;
}

}  // namespace muster::trainer
