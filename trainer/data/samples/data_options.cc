#include "trainer/data/samples/data_options.h"

#include <algorithm>
#include <cstddef>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "base/json.h"

namespace muster::trainer {

std::string ReadableName(const std::string& name) {
  // Invalid UTF-8 does not survive a round trip.
  if (base::ParseJson(base::JsonText(base::Json(name))) == name) return name;
  std::string escaped;
  for (const char c : name) {
    const auto byte = static_cast<std::uint8_t>(c);
    if (byte < 0x80) {
      escaped += c;
    } else {
      absl::StrAppend(&escaped, "\\x", absl::Hex(byte));
    }
  }
  return escaped;
}

void AddClasses(const std::vector<std::string>& found, std::vector<std::string>& classes) {
  std::set<std::string> seen(classes.begin(), classes.end());
  for (const std::string& name : found) {
    if (seen.insert(name).second) classes.push_back(name);
  }
}

std::map<std::string, std::int64_t> NumbersOf(const std::vector<std::string>& classes) {
  std::map<std::string, std::int64_t> numbers;
  for (const std::string& name : classes) {
    numbers.emplace(name, static_cast<std::int64_t>(numbers.size()));
  }
  return numbers;
}

std::string UnknownClass(const std::vector<std::string>& known,
                         const std::vector<std::string>& classes) {
  constexpr std::size_t kMostToShow = 10;
  if (classes.size() <= known.size()) return "";
  const auto end = known.begin() + static_cast<std::ptrdiff_t>(std::min(known.size(), kMostToShow));
  return absl::StrCat("the model does not know the class '", classes[known.size()], "', only ",
                      absl::StrJoin(known.begin(), end, ", "),
                      end == known.end() ? "" : absl::StrCat(" and ", known.end() - end, " more"));
}

}  // namespace muster::trainer
