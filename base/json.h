// JSON, with nlohmann's library. Parsing and serializing are its expensive part to compile, so both
// are compiled once, here.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/redact.h"

namespace muster::base {

// Members keep the order in which they were added. Lookup is linear in the number of members; for
// objects with thousands of them use nlohmann::json.
using Json = nlohmann::ordered_json;

// Parses `text`. If it is not JSON, the result is_discarded().
Json ParseJson(std::string_view text);

// On one line, or, with an `indent`, one member per line, indented by that many spaces per level.
// Bytes that are not UTF-8, such as a path may contain, become U+FFFD to keep the output valid.
std::string JsonText(const Json& value, int indent = -1);

// Redaction of secrets in JSON.

// Redacts each string value on its own, so that the result is still JSON. Member names are kept.
inline void RedactTexts(const Redactor& redact, Json& json) {
  if (json.is_string()) {
    json = redact(json.get<std::string>());
  } else if (json.is_structured()) {
    for (Json& member : json) RedactTexts(redact, member);
  }
}

}  // namespace muster::base
