#include "rendezvous/core/key_value_store.h"

#include <limits>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace muster::rendezvous {
namespace {

absl::Status Exhausted(absl::string_view attempt, std::string_view key, absl::string_view what,
                       std::size_t would_be, std::size_t limit) {
  return absl::ResourceExhaustedError(absl::StrCat(attempt, " ", ShownKey(key), ": ", what, " ",
                                                   would_be, ", the limit is ", limit));
}

bool IsDigit(char c) {
  return absl::ascii_isdigit(static_cast<unsigned char>(c));
}

// A number by the rules of std::stoll, which every c10d server follows: leading blanks, a sign and
// the digits up to the first other byte, whatever follows it.
absl::StatusOr<std::int64_t> ParseNumber(std::string_view key, std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && absl::ascii_isspace(static_cast<unsigned char>(text[at]))) ++at;
  const bool negative = at < text.size() && text[at] == '-';
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  if (at == text.size() || !IsDigit(text[at])) {
    return absl::FailedPreconditionError(
        absl::StrCat("add to ", ShownKey(key), ": the value is not a number"));
  }
  // Counted downwards, because the smallest number has no positive counterpart.
  std::int64_t number = 0;
  for (; at < text.size() && IsDigit(text[at]); ++at) {
    if (__builtin_mul_overflow(number, 10, &number) ||
        __builtin_sub_overflow(number, text[at] - '0', &number)) {
      return absl::OutOfRangeError(
          absl::StrCat("add to ", ShownKey(key), ": the value does not fit in 64 bits"));
    }
  }
  if (negative) return number;
  if (number == std::numeric_limits<std::int64_t>::min()) {
    return absl::OutOfRangeError(
        absl::StrCat("add to ", ShownKey(key), ": the value does not fit in 64 bits"));
  }
  return -number;
}

}  // namespace

std::string ShownKey(std::string_view key) {
  constexpr std::size_t kShown = 64;
  return absl::StrCat("'", absl::CEscape(std::string(key.substr(0, kShown))),
                      key.size() > kShown ? "...'" : "'");
}

const std::string* KeyValueStore::Get(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

absl::Status KeyValueStore::Set(std::string_view key, std::string_view value) {
  if (absl::Status status = CheckWrite("set", key, value.size()); !status.ok()) return status;
  Write(key, value);
  return absl::OkStatus();
}

absl::StatusOr<std::int64_t> KeyValueStore::Add(std::string_view key, std::int64_t delta) {
  std::int64_t number = 0;
  if (const std::string* value = Get(key)) {
    const absl::StatusOr<std::int64_t> parsed = ParseNumber(key, *value);
    if (!parsed.ok()) return parsed.status();
    number = *parsed;
  }
  if (__builtin_add_overflow(number, delta, &number)) {
    return absl::OutOfRangeError(
        absl::StrCat("add to ", ShownKey(key), ": the sum does not fit in 64 bits"));
  }
  const std::string text = absl::StrCat(number);
  if (absl::Status status = CheckWrite("add to", key, text.size()); !status.ok()) return status;
  Write(key, text);
  return number;
}

absl::StatusOr<KeyValueStore::CompareSetOutcome> KeyValueStore::CompareSet(
    std::string_view key, std::string_view expected, std::string_view desired) {
  const std::string* value = Get(key);
  const bool matches = value != nullptr ? *value == expected : expected.empty();
  if (!matches) {
    return CompareSetOutcome{false, value != nullptr ? *value : std::string(expected)};
  }
  if (absl::Status status = CheckWrite("compare-set", key, desired.size()); !status.ok()) {
    return status;
  }
  Write(key, desired);
  return CompareSetOutcome{true, std::string(desired)};
}

absl::Status KeyValueStore::Append(std::string_view key, std::string_view suffix) {
  const auto found = values_.find(key);
  const std::size_t old_bytes = found == values_.end() ? 0 : found->second.size();
  if (absl::Status status = CheckWrite("append to", key, old_bytes + suffix.size()); !status.ok()) {
    return status;
  }
  if (found == values_.end()) {
    Write(key, suffix);
  } else {
    found->second.append(suffix);
    bytes_ += suffix.size();
  }
  return absl::OkStatus();
}

bool KeyValueStore::Delete(std::string_view key) {
  const auto found = values_.find(key);
  if (found == values_.end()) return false;
  bytes_ -= found->first.size() + found->second.size();
  values_.erase(found);
  return true;
}

bool KeyValueStore::Check(std::span<const std::string_view> keys) const {
  for (const std::string_view key : keys) {
    if (!values_.contains(key)) return false;
  }
  return true;
}

std::vector<const std::string*> KeyValueStore::MultiGet(
    std::span<const std::string_view> keys) const {
  std::vector<const std::string*> values;
  values.reserve(keys.size());
  for (const std::string_view key : keys) values.push_back(Get(key));
  return values;
}

absl::Status KeyValueStore::MultiSet(std::span<const Entry> entries) {
  // Sums as they will be, each key with the last of its values.
  std::map<std::string_view, std::size_t> final_sizes;
  for (const auto& [key, value] : entries) {
    if (absl::Status status = CheckSizes("multi-set", key, value.size()); !status.ok()) {
      return status;
    }
    final_sizes[key] = value.size();
  }
  std::size_t keys = values_.size();
  std::size_t bytes = bytes_;
  for (const auto& [key, value_bytes] : final_sizes) {
    const std::string* old_value = Get(key);
    if (old_value == nullptr) ++keys;
    bytes += value_bytes + (old_value == nullptr ? key.size() : 0);
    bytes -= old_value == nullptr ? 0 : old_value->size();
  }
  if (!entries.empty()) {
    absl::Status status = CheckTotals("multi-set", entries.front().first, keys, bytes);
    if (!status.ok()) return status;
  }
  for (const auto& [key, value] : entries) Write(key, value);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<WaiterId>> KeyValueStore::Wait(std::span<const std::string_view> keys,
                                                            std::optional<TimePoint> deadline) {
  std::vector<std::string_view> missing;
  std::size_t bytes = waits_.bytes();
  for (const std::string_view key : keys) {
    if (values_.contains(key)) continue;
    if (absl::Status status = CheckSizes("wait for", key, 0); !status.ok()) return status;
    missing.push_back(key);
    // As if no other wait had named the key: at worst a wait is refused a little early.
    bytes += key.size() + WaitList::kBytesPerPair;
  }
  if (missing.empty()) return std::nullopt;
  if (waits_.size() >= limits_.waits) {
    return Exhausted("wait for", missing.front(), "pending waits would be", waits_.size() + 1,
                     limits_.waits);
  }
  if (bytes > limits_.wait_bytes) {
    return Exhausted("wait for", missing.front(), "bytes of pending waits would be", bytes,
                     limits_.wait_bytes);
  }
  return waits_.Add(missing, deadline);
}

absl::Status KeyValueStore::CheckSizes(absl::string_view attempt, std::string_view key,
                                       std::size_t value_bytes) const {
  if (key.size() > limits_.key_bytes) {
    return Exhausted(attempt, key, "bytes of the key are", key.size(), limits_.key_bytes);
  }
  if (value_bytes > limits_.value_bytes) {
    return Exhausted(attempt, key, "bytes of the value would be", value_bytes, limits_.value_bytes);
  }
  return absl::OkStatus();
}

absl::Status KeyValueStore::CheckTotals(absl::string_view attempt, std::string_view key,
                                        std::size_t keys, std::size_t bytes) const {
  if (keys > limits_.keys) {
    return Exhausted(attempt, key, "keys of the job would be", keys, limits_.keys);
  }
  if (bytes > limits_.total_bytes) {
    return Exhausted(attempt, key, "bytes of the job's keys and values would be", bytes,
                     limits_.total_bytes);
  }
  return absl::OkStatus();
}

absl::Status KeyValueStore::CheckWrite(absl::string_view attempt, std::string_view key,
                                       std::size_t value_bytes) const {
  if (absl::Status status = CheckSizes(attempt, key, value_bytes); !status.ok()) return status;
  const std::string* old_value = Get(key);
  if (old_value != nullptr) {
    return CheckTotals(attempt, key, values_.size(), bytes_ - old_value->size() + value_bytes);
  }
  return CheckTotals(attempt, key, values_.size() + 1, bytes_ + key.size() + value_bytes);
}

void KeyValueStore::Write(std::string_view key, std::string_view value) {
  const auto [entry, is_new] = values_.try_emplace(key);
  if (is_new) bytes_ += key.size();
  bytes_ -= entry->second.size();
  bytes_ += value.size();
  entry->second = value;
  if (is_new) waits_.KeyCreated(key);
}

}  // namespace muster::rendezvous
