// The same for JSON.
#pragma once

#include <string>

#include "base/json.h"
#include "base/redact.h"

namespace muster::base {

// Each text in it, one by one, so that it remains JSON. Names of members are left alone.
inline void RedactTexts(const Redactor& redact, Json& json) {
  if (json.is_string()) {
    json = redact(json.get<std::string>());
  } else if (json.is_structured()) {
    for (Json& member : json) RedactTexts(redact, member);
  }
}

}  // namespace muster::base
