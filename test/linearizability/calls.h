// Short forms of store calls and their answers, for hand-written and random histories.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "test/linearizability/store_history.h"

namespace muster::linearizability {

inline StoreCall Get(std::string key) {
  return {StoreCommand::kGet, {std::move(key)}};
}
inline StoreCall Set(std::string key, std::string value) {
  return {StoreCommand::kSet, {std::move(key)}, {std::move(value)}};
}
inline StoreCall Add(std::string key, std::int64_t delta) {
  return {StoreCommand::kAdd, {std::move(key)}, {}, delta};
}
inline StoreCall CompareSet(std::string key, std::string expected, std::string desired) {
  return {StoreCommand::kCompareSet, {std::move(key)}, {std::move(expected), std::move(desired)}};
}
inline StoreCall Append(std::string key, std::string suffix) {
  return {StoreCommand::kAppend, {std::move(key)}, {std::move(suffix)}};
}
inline StoreCall Delete(std::string key) {
  return {StoreCommand::kDelete, {std::move(key)}};
}
inline StoreCall Check(std::vector<std::string> keys) {
  return {StoreCommand::kCheck, std::move(keys)};
}
inline StoreCall MultiGet(std::vector<std::string> keys) {
  return {StoreCommand::kMultiGet, std::move(keys)};
}
inline StoreCall MultiSet(std::vector<std::string> keys, std::vector<std::string> values) {
  return {StoreCommand::kMultiSet, std::move(keys), std::move(values)};
}

inline StoreAnswer Done() {
  return {};
}
inline StoreAnswer Unknown() {
  return {.kind = StoreAnswer::Kind::kUnknown};
}
inline StoreAnswer Nothing() {
  return {.values = {std::nullopt}};
}
inline StoreAnswer Value(std::string value) {
  return {.values = {std::move(value)}};
}
inline StoreAnswer Sum(std::int64_t sum) {
  return {.sum = sum};
}
inline StoreAnswer Says(bool yes) {
  return {.yes = yes};
}

}  // namespace muster::linearizability
