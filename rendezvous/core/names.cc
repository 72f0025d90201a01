#include "rendezvous/core/names.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"

namespace muster::rendezvous {
namespace {

// "run id "../pwn" must ...", whatever bytes the name holds.
absl::Status Refuse(std::string_view what, std::string_view name, std::string_view rule) {
  const bool cut = name.size() > kMaxNameLength;
  std::string sentence(what);
  sentence += " \"";
  sentence += absl::CEscape(std::string(name.substr(0, kMaxNameLength)));
  sentence += cut ? "...\" " : "\" ";
  sentence += rule;
  return absl::InvalidArgumentError(sentence);
}

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
}

}  // namespace

absl::Status CheckName(std::string_view what, std::string_view name) {
  if (name.empty()) return absl::InvalidArgumentError(std::string(what) + " is empty");
  if (name.size() > kMaxNameLength) return Refuse(what, name, "is longer than 64 characters");
  if (!absl::ascii_isalnum(static_cast<unsigned char>(name.front()))) {
    return Refuse(what, name, "must start with a letter or a digit");
  }
  if (!std::all_of(name.begin(), name.end(), IsNameCharacter)) {
    return Refuse(what, name, "may only hold letters, digits, '.', '_' and '-'");
  }
  if (name.find("..") != name.npos) return Refuse(what, name, "may not hold \"..\"");
  return absl::OkStatus();
}

}  // namespace muster::rendezvous
