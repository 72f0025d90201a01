#include "trainer/app/options/config_file.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace muster::trainer {
namespace {

// Stands for a string in quotes while CLI11 reads the file, whose reader would split and cut it.
constexpr char kMark = '\x01';

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool BeginsValue(const std::string& line, std::size_t at) {
  return at == 0 || absl::StrContains(" \t=[,", line.substr(at - 1, 1));
}

bool EndsValue(const std::string& line, std::size_t after) {
  return after == line.size() || absl::StrContains(" \t\r,]#", line.substr(after, 1));
}

// The place of the quote that closes the string which begins at `open`; npos if it is not closed.
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

// What a TOML string means, which `text` has with its quotes: in double quotes \n and the like
// stand for what cannot be written.
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

// `line` up to a '#' that is not in quotes, with a mark for each string, which is added to
// `strings`. A quote that is never closed is an apostrophe.
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

// The string that `mark` stands for, or `mark` itself.
std::string Unmarked(const std::string& mark, const std::vector<std::string>& strings) {
  std::size_t number = 0;
  const bool known = !mark.empty() && mark[0] == kMark &&
                     absl::SimpleAtoi(mark.substr(1), &number) && number < strings.size();
  return known ? strings[number] : mark;
}

class QuoteAwareFormat : public CLI::ConfigBase {
 public:
  explicit QuoteAwareFormat(std::set<std::string> lists) : lists_(std::move(lists)) {
    comment('\0');
  }

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    std::stringstream lines;
    std::vector<std::string> strings;
    for (std::string line; std::getline(input, line);) {
      if (strings.empty() && lines.tellp() == 0 && line.starts_with(kByteOrderMark)) {
        line.erase(0, kByteOrderMark.size());
      }
      lines << WithMarks(line, strings) << '\n';
    }
    std::vector<CLI::ConfigItem> items = CLI::ConfigBase::from_config(lines);
    for (CLI::ConfigItem& item : items) {
      item.name = Unmarked(item.name, strings);
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

// `value` as the file has it.
std::string InFile(const std::string& value) {
  if (value == "true" || value == "false" || IsNumber(value)) return value;
  const std::string escaped = Escaped(value);
  // Without escapes, where that can be, because it is easier to read.
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

std::shared_ptr<CLI::Config> ConfigFormat(std::set<std::string> lists) {
  return std::make_shared<QuoteAwareFormat>(std::move(lists));
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
