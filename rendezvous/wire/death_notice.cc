#include "rendezvous/wire/death_notice.h"

#include "absl/strings/str_cat.h"

namespace muster::rendezvous {
namespace {

constexpr std::string_view kDeathNoticeBegin = "DEAD ";

}  // namespace

std::string FormatDeathNotice(const SessionToken& session) {
  return absl::StrCat("DEAD ", session, "\n");
}

std::optional<SessionToken> ParseDeathNotice(std::string_view text) {
  if (text.substr(0, kDeathNoticeBegin.size()) != kDeathNoticeBegin || text.back() != '\n')
    return std::nullopt;
  text.remove_prefix(kDeathNoticeBegin.size());
  text.remove_suffix(1);
  if (text.empty() || text.find('\n') != std::string_view::npos) return std::nullopt;
  return SessionToken(text);
}

}  // namespace muster::rendezvous
