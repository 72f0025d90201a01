#include "launcher/hosts/host_ranges.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace muster::launcher {
namespace {

constexpr std::size_t kMaxDigits = 9;

absl::Status TooMany() {
  return absl::InvalidArgumentError(
      absl::StrCat("stands for more than ", kMaxHosts, " hosts; check its ranges"));
}

bool IsNumber(absl::string_view text) {
  return !text.empty() && text.size() <= kMaxDigits &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); });
}

// "7" or "7-12" or "07-12": the numbers, as wide as the first of them is written.
absl::Status AppendRange(absl::string_view range, std::vector<std::string>& numbers) {
  const std::vector<absl::string_view> ends = absl::StrSplit(range, absl::MaxSplits('-', 1));
  const absl::string_view first = ends.front();
  const absl::string_view last = ends.back();
  if (!IsNumber(first) || !IsNumber(last)) {
    return absl::InvalidArgumentError(absl::StrCat("has '", range,
                                                   "' in its brackets, which is no number and no "
                                                   "range of numbers; write node[1-3,7]"));
  }
  int from = 0;
  int to = 0;
  if (!absl::SimpleAtoi(first, &from) || !absl::SimpleAtoi(last, &to)) return TooMany();
  if (from > to) {
    return absl::InvalidArgumentError(
        absl::StrCat("has a range that runs backwards, ", range, "; write ", last, "-", first));
  }
  if (static_cast<std::size_t>(to - from) >= kMaxHosts) return TooMany();
  for (int number = from; number <= to; ++number) {
    const std::string digits = absl::StrCat(number);
    const std::size_t zeros = first.size() > digits.size() ? first.size() - digits.size() : 0;
    numbers.push_back(absl::StrCat(std::string(zeros, '0'), digits));
  }
  return absl::OkStatus();
}

// Each of `names` with each of `endings` behind it.
absl::StatusOr<std::vector<std::string>> Product(const std::vector<std::string>& names,
                                                 const std::vector<std::string>& endings) {
  if (names.size() * endings.size() > kMaxHosts) return TooMany();
  std::vector<std::string> product;
  product.reserve(names.size() * endings.size());
  for (const std::string& name : names) {
    for (const std::string& ending : endings) product.push_back(absl::StrCat(name, ending));
  }
  return product;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExpandRanges(absl::string_view text) {
  std::vector<std::string> names = {""};
  while (!text.empty()) {
    const std::size_t open = text.find('[');
    const absl::string_view plain = text.substr(0, open);
    if (plain.find(']') != absl::string_view::npos) {
      return absl::InvalidArgumentError("has a ] without its [; write node[1-3]");
    }
    for (std::string& name : names) absl::StrAppend(&name, plain);
    if (open == absl::string_view::npos) break;
    const std::size_t close = text.find(']', open);
    if (close == absl::string_view::npos) {
      return absl::InvalidArgumentError("has a [ without its ]; write node[1-3]");
    }
    std::vector<std::string> numbers;
    for (const absl::string_view range :
         absl::StrSplit(text.substr(open + 1, close - open - 1), ',')) {
      const absl::Status status = AppendRange(range, numbers);
      if (!status.ok()) return status;
      if (numbers.size() > kMaxHosts) return TooMany();
    }
    auto product = Product(names, numbers);
    if (!product.ok()) return product.status();
    names = *std::move(product);
    text.remove_prefix(close + 1);
  }
  return names;
}

std::vector<absl::string_view> SplitHostItems(absl::string_view text) {
  std::vector<absl::string_view> items;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '[') ++depth;
    if (text[at] == ']') --depth;
    if (text[at] != ',' || depth > 0) continue;
    items.push_back(text.substr(begin, at - begin));
    begin = at + 1;
  }
  items.push_back(text.substr(begin));
  return items;
}

}  // namespace muster::launcher
