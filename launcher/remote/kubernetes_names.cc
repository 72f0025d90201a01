#include "launcher/remote/kubernetes_names.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace muster::launcher {
namespace {

constexpr std::size_t kLongestLabel = 63;
constexpr std::size_t kLongestName = 253;

bool IsLowerOrDigit(char c) {
  return absl::ascii_islower(static_cast<unsigned char>(c)) ||
         absl::ascii_isdigit(static_cast<unsigned char>(c));
}

// The number of leading digits.
std::size_t CountDigits(absl::string_view text) {
  const auto end = std::find_if_not(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
  return static_cast<std::size_t>(end - text.begin());
}

}  // namespace

bool IsDnsLabel(absl::string_view text) {
  return !text.empty() && text.size() <= kLongestLabel && IsLowerOrDigit(text.front()) &&
         IsLowerOrDigit(text.back()) && std::all_of(text.begin(), text.end(), [](char c) {
           return IsLowerOrDigit(c) || c == '-';
         });
}

bool IsServiceName(absl::string_view text) {
  return IsDnsLabel(text) && absl::ascii_islower(static_cast<unsigned char>(text.front()));
}

bool IsDnsName(absl::string_view text) {
  const std::vector<absl::string_view> labels = absl::StrSplit(text, '.');
  return text.size() <= kLongestName && std::all_of(labels.begin(), labels.end(), IsDnsLabel);
}

bool IsExtendedResource(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '/');
  constexpr absl::string_view kOther = "-_.";
  return parts.size() == 2 && IsDnsName(parts[0]) && !parts[1].empty() &&
         parts[1].size() <= kLongestLabel &&
         std::all_of(parts[1].begin(), parts[1].end(), [&](unsigned char c) {
           return absl::ascii_isalnum(c) || kOther.find(static_cast<char>(c)) != kOther.npos;
         });
}

bool IsQuantity(absl::string_view text) {
  const std::size_t whole = CountDigits(text);
  if (whole == 0) return false;
  text.remove_prefix(whole);
  if (!text.empty() && text.front() == '.') {
    const std::size_t fraction = CountDigits(text.substr(1));
    if (fraction == 0) return false;
    text.remove_prefix(1 + fraction);
  }
  constexpr absl::string_view kSuffixes[] = {"",  "m",  "k",  "M",  "G",  "T",  "P",
                                             "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  return std::find(std::begin(kSuffixes), std::end(kSuffixes), text) != std::end(kSuffixes);
}

bool IsVariableName(absl::string_view text) {
  return !text.empty() && !absl::ascii_isdigit(static_cast<unsigned char>(text.front())) &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.';
         });
}

std::string WithoutExpansion(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"$", "$$"}});
}

}  // namespace muster::launcher
