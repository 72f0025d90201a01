#include "launcher/config/prefix_template.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace muster::launcher {
namespace {

bool IsNameChar(char c, bool first) {
  const auto byte = static_cast<unsigned char>(c);
  return c == '_' || (first ? absl::ascii_isalpha(byte) : absl::ascii_isalnum(byte));
}

// The identifier at the start of `text`; empty when there is none.
absl::string_view NameAt(absl::string_view text) {
  std::size_t length = 0;
  while (length < text.size() && IsNameChar(text[length], length == 0)) ++length;
  return text.substr(0, length);
}

}  // namespace

std::string ExpandTemplate(absl::string_view text,
                           const std::map<std::string, std::string>& values) {
  std::string out;
  while (!text.empty()) {
    const std::size_t dollar = text.find('$');
    absl::StrAppend(&out, text.substr(0, dollar));
    if (dollar == absl::string_view::npos) break;
    text.remove_prefix(dollar + 1);
    if (!text.empty() && text.front() == '$') {
      out += '$';
      text.remove_prefix(1);
      continue;
    }
    const bool braced = !text.empty() && text.front() == '{';
    const absl::string_view name = NameAt(text.substr(braced ? 1 : 0));
    const bool closed = !braced || (name.size() + 1 < text.size() && text[name.size() + 1] == '}');
    if (name.empty() || !closed) {
      out += '$';
      continue;
    }
    const auto found = values.find(std::string(name));
    absl::StrAppend(&out, found != values.end() ? found->second : absl::StrCat("${", name, "}"));
    text.remove_prefix(name.size() + (braced ? 2 : 0));
  }
  return out;
}

}  // namespace muster::launcher
