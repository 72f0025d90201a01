#include "launcher/flags/filter_list.h"

#include <utility>

namespace muster::launcher {

std::vector<std::string> SplitFilters(absl::string_view text) {
  std::vector<std::string> entries;
  std::string entry;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ',') {
      entry += text[i];
    } else if (i + 1 < text.size() && text[i + 1] == ',') {
      entry += ',';
      ++i;
    } else if (!entry.empty()) {
      entries.push_back(std::exchange(entry, {}));
    }
  }
  if (!entry.empty()) entries.push_back(std::move(entry));
  return entries;
}

}  // namespace muster::launcher
