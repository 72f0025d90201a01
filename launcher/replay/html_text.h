// Text from logs inside of a page: never markup.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "base/json.h"

namespace muster::launcher {

// For the content of an element, or of an attribute in quotes. Harmless() as well, as is what
// follows.
std::string HtmlText(absl::string_view text);

// For the content of a script element of type application/json: no '<', so that nothing in it ends
// the element.
std::string JsonForHtml(const base::Json& value);

// The source expression by which a Content-Security-Policy allows an inline script or style with
// exactly this content: "'sha256-...'".
std::string PolicyHash(absl::string_view content);

}  // namespace muster::launcher
