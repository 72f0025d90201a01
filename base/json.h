// JSON, with nlohmann's library. To read and to write is most of what that takes to compile, so
// both are compiled once, here.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace muster::base {

// Members stay in the order in which they were written. To find one takes as long as there are
// members; for objects with thousands of them use nlohmann::json.
using Json = nlohmann::ordered_json;

// What `text` says. If it is no JSON, a value for which is_discarded() holds, and nothing else.
Json ParseJson(std::string_view text);

// In one line; with an `indent`, one line for each member, with so many spaces for each level. What
// is no UTF-8, such as a path may hold, becomes U+FFFD: nobody could read the text otherwise.
std::string JsonText(const Json& value, int indent = -1);

}  // namespace muster::base
