#include "launcher/replay/html_text.h"

#include <openssl/sha.h>

#include <array>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "launcher/replay/harmless.h"

namespace muster::launcher {

std::string HtmlText(absl::string_view text) {
  std::string out;
  for (const char c : Harmless(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        // HTML has no control characters.
        out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
    }
  }
  return out;
}

std::string JsonForHtml(const base::Json& value) {
  // It stands in texts alone.
  return absl::StrReplaceAll(Harmless(base::JsonText(value)), {{"<", "\\u003c"}});
}

std::string PolicyHash(absl::string_view content) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(content.data()), content.size(), digest.data());
  return absl::StrCat("'sha256-",
                      absl::Base64Escape(absl::string_view(
                          reinterpret_cast<const char*>(digest.data()), digest.size())),
                      "'");
}

}  // namespace muster::launcher
