#include "test/rendezvous/pages/description.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

namespace muster::rendezvous {

using base::Json;

std::string Objection(const Json& value, Json schema, const Json& api, const std::string& where) {
  if (schema.contains("oneOf")) {
    std::string objections;
    for (const Json& one : schema["oneOf"]) {
      const std::string objection = Objection(value, one, api, where);
      if (objection.empty()) return "";
      objections += objection + "; ";
    }
    return objections;
  }
  if (schema.contains("$ref")) {
    const std::string name =
        schema["$ref"].get<std::string>().substr(sizeof("#/components/schemas"));
    return Objection(value, api["components"]["schemas"].at(name), api, where);
  }
  const Json types = schema["type"].is_array() ? schema["type"] : Json::array({schema["type"]});
  const auto fits = [&value](const std::string& type) {
    return type == "object"    ? value.is_object()
           : type == "array"   ? value.is_array()
           : type == "string"  ? value.is_string()
           : type == "integer" ? value.is_number_integer()
           : type == "number"  ? value.is_number()
           : type == "boolean" ? value.is_boolean()
                               : value.is_null();
  };
  if (std::none_of(types.begin(), types.end(), fits)) return where + " is of another type";
  if (schema.contains("enum")) {
    const Json& words = schema["enum"];
    if (std::find(words.begin(), words.end(), value) == words.end()) return where + " is not known";
  }
  if (value.is_array()) {
    for (const Json& item : value) {
      const std::string objection = Objection(item, schema["items"], api, where + "[]");
      if (!objection.empty()) return objection;
    }
  }
  if (!value.is_object()) return "";
  for (const Json& name : schema["required"]) {
    if (!value.contains(name.get<std::string>()))
      return where + " lacks " + name.get<std::string>();
  }
  for (const auto& [name, member] : value.items()) {
    if (!schema["properties"].contains(name)) return where + "." + name + " is not described";
    const std::string objection =
        Objection(member, schema["properties"][name], api, where + "." + name);
    if (!objection.empty()) return objection;
  }
  return "";
}

Json Description() {
  std::stringstream text;
  text << std::ifstream("docs/observing/openapi.json").rdbuf();
  const Json api = base::ParseJson(text.str());
  EXPECT_TRUE(api.is_object());
  return api;
}

std::string Objection(const HttpAnswer& answer, const std::string& path, const Json& api) {
  const Json& answers = api["paths"].at(path)["get"]["responses"];
  const std::string status = std::to_string(answer.status);
  if (!answers.contains(status)) return path + " does not answer " + status;
  const Json& content = answers.at(status)["content"];
  if (!content.contains(answer.type.substr(0, answer.type.find(';')))) {
    return path + " does not answer with " + answer.type;
  }
  if (answer.type != "application/json") return "";
  return Objection(Json::parse(answer.body), content["application/json"]["schema"], api, path);
}

}  // namespace muster::rendezvous
