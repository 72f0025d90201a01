#include "rendezvous/core/job/key_value_store.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include "base/check.h"

namespace muster::rendezvous {
namespace {

// `most` is this store's limit, which may be less than what `limit` says.
absl::Status Exhausted(const Limit& limit, absl::string_view attempt, std::string_view key,
                       absl::string_view what, std::size_t would_be, std::size_t most) {
  return LimitRefusal(limit, absl::StrCat(attempt, " ", ShownKey(key), ": ", what, " ", would_be,
                                          ", the limit is ", most));
}

// A missing key counts as 0.
absl::StatusOr<std::int64_t> NumberOf(absl::string_view attempt, std::string_view key,
                                      const std::string* value) {
  if (value == nullptr) return 0;
  absl::StatusOr<std::int64_t> number = ParseStoredNumber(*value);
  if (number.ok()) return number;
  return absl::Status(number.status().code(),
                      absl::StrCat(attempt, " ", ShownKey(key), ": ", number.status().message()));
}

// Kept out of Add(), which is called ten million times a second and hardly ever fails.
[[gnu::cold, gnu::noinline]] absl::Status SumTooLarge(std::string_view key) {
  return absl::OutOfRangeError(
      absl::StrCat("add to ", ShownKey(key), ": the sum does not fit in 64 bits"));
}

}  // namespace

std::string ShownKey(std::string_view key) {
  constexpr std::size_t kShown = 64;
  return absl::StrCat("'", absl::CEscape(std::string(key.substr(0, kShown))),
                      key.size() > kShown ? "...'" : "'");
}

std::string* KeyValueStore::Find(std::string_view key) {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

absl::Status KeyValueStore::Set(std::string_view key, std::string_view value) {
  std::string* const old_value = Find(key);
  absl::Status status = CheckWrite("set", key, old_value, value.size());
  if (status.ok()) Write(key, old_value, value);
  return status;
}

absl::StatusOr<std::int64_t> KeyValueStore::Add(std::string_view key, std::int64_t delta,
                                                Overflow overflow) {
  std::string* const old_value = Find(key);
  const absl::StatusOr<std::int64_t> before = NumberOf("add to", key, old_value);
  if (!before.ok()) return before.status();
  if (std::int64_t sum = 0;
      overflow == Overflow::kRefused && __builtin_add_overflow(*before, delta, &sum)) {
    return SumTooLarge(key);
  }
  const std::int64_t number = AddStoredNumbers(*before, delta);
  const absl::AlphaNum text(number);
  absl::Status status = CheckWrite("add to", key, old_value, text.size());
  if (!status.ok()) return status;
  Write(key, old_value, std::string_view(text.data(), text.size()));
  return number;
}

absl::StatusOr<KeyValueStore::CompareSetOutcome> KeyValueStore::CompareSet(
    std::string_view key, std::string_view expected, std::string_view desired) {
  std::string* const value = Find(key);
  const bool matches = value != nullptr ? *value == expected : expected.empty();
  if (!matches) {
    return CompareSetOutcome{false, value != nullptr ? *value : std::string(expected)};
  }
  absl::Status status = CheckWrite("compare-set", key, value, desired.size());
  if (!status.ok()) return status;
  Write(key, value, desired);
  return CompareSetOutcome{true, std::string(desired)};
}

absl::Status KeyValueStore::Append(std::string_view key, std::string_view suffix) {
  std::string* const value = Find(key);
  const std::size_t old_bytes = value == nullptr ? 0 : value->size();
  absl::Status status = CheckWrite("append to", key, value, old_bytes + suffix.size());
  if (!status.ok()) return status;
  if (value == nullptr) {
    Write(key, nullptr, suffix);
  } else {
    value->append(suffix);
    bytes_ += suffix.size();
    TakeShare();
    Track(key);
    Count(key, *value);
  }
  return absl::OkStatus();
}

bool KeyValueStore::Delete(std::string_view key) {
  const auto found = values_.find(key);
  if (found == values_.end()) return false;
  MUSTER_CHECK(bytes_ >= found->first.size() + found->second.size());
  bytes_ -= found->first.size() + found->second.size();
  values_.erase(found);
  TakeShare();
  Track(key);
  return true;
}

bool KeyValueStore::Check(std::span<const std::string_view> keys) const {
  return std::all_of(keys.begin(), keys.end(),
                     [this](std::string_view key) { return Exists(key); });
}

std::vector<std::string_view> KeyValueStore::Keys() const {
  std::vector<std::string_view> keys;
  keys.reserve(values_.size());
  for (const auto& [key, value] : values_) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  return keys;
}

std::vector<const std::string*> KeyValueStore::MultiGet(
    std::span<const std::string_view> keys) const {
  std::vector<const std::string*> values;
  values.reserve(keys.size());
  for (const std::string_view key : keys) values.push_back(Get(key));
  return values;
}

absl::Status KeyValueStore::MultiSet(std::span<const Entry> entries) {
  // Totals after the call, each key with the last of its values.
  std::map<std::string_view, std::size_t> final_sizes;
  for (const auto& [key, value] : entries) {
    if (absl::Status status = CheckSizes("multi-set", key, value.size()); !status.ok()) {
      return status;
    }
    final_sizes[key] = value.size();
  }
  std::size_t keys = values_.size() + queues_.size();
  std::size_t bytes = TotalBytes();
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
  for (const auto& [key, value] : entries) Write(key, Find(key), value);
  return absl::OkStatus();
}

absl::Status KeyValueStore::Push(std::string_view key, std::string_view value) {
  if (absl::Status status = CheckSizes("push to", key, value.size()); !status.ok()) return status;
  const bool is_new = queues_.Length(key) == 0;
  const std::size_t keys = values_.size() + queues_.size() + (is_new ? 1 : 0);
  const std::size_t bytes =
      TotalBytes() + (is_new ? key.size() : 0) + value.size() + KeyQueues::kBytesPerValue;
  if (absl::Status status = CheckTotals("push to", key, keys, bytes); !status.ok()) return status;
  queues_.Push(key, value);
  TakeShare();
  waits_.KeyPushed(key, completed_);
  return absl::OkStatus();
}

KeyValueStore::PopOutcome KeyValueStore::Pop(std::string_view key) {
  PopOutcome outcome{.length = queues_.Length(key)};
  if (std::optional<std::string> value = queues_.Pop(key)) outcome.value = *std::move(value);
  TakeShare();
  return outcome;
}

absl::StatusOr<std::optional<WaiterId>> KeyValueStore::Barrier(std::string_view key,
                                                               std::int64_t world_size) {
  std::string* const old_value = Find(key);
  const absl::StatusOr<std::int64_t> before = NumberOf("barrier at", key, old_value);
  if (!before.ok()) return before.status();
  const std::int64_t count = AddStoredNumbers(*before, 1);
  const absl::AlphaNum text(count);
  absl::Status status = CheckWrite("barrier at", key, old_value, text.size());
  if (status.ok() && count < world_size) {
    status = CheckWaits(key, key.size() + BarrierList::kBytesPerWait);
  }
  if (!status.ok()) return status;

  Write(key, old_value, std::string_view(text.data(), text.size()));
  if (count >= world_size) {
    // Also waits that named a larger size: c10d's server wakes every wait at the key.
    barriers_.Release(key, completed_);
    return std::nullopt;
  }
  barriers_.Add(++last_waiter_, key, world_size);
  return last_waiter_;
}

absl::StatusOr<std::optional<WaiterId>> KeyValueStore::Meet(const Arrival& arrival) {
  for (const std::string_view name : {arrival.name, arrival.caller}) {
    if (absl::Status status = CheckSizes("barrier", name, 0); !status.ok()) return status;
  }
  if (arrival.count == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("barrier ", ShownKey(arrival.name), ": the count must be at least 1"));
  }
  const std::uint64_t expected = meetings_.CountOf(arrival.name);
  if (expected != 0 && expected != arrival.count) {
    return absl::FailedPreconditionError(
        absl::StrCat("barrier ", ShownKey(arrival.name), ": this call expects ", arrival.count,
                     ", but the callers already waiting there expect ", expected));
  }
  // No limit can be exceeded: the wait it replaces was at least as large.
  if (meetings_.Replace(arrival, completed_)) {
    meetings_.Add(++last_waiter_, arrival);
    return last_waiter_;
  }
  if (meetings_.Completes(arrival, completed_)) return std::nullopt;
  if (absl::Status status = CheckWaits(arrival.name, MeetingList::Bytes(arrival)); !status.ok()) {
    return status;
  }
  meetings_.Add(++last_waiter_, arrival);
  return last_waiter_;
}

absl::StatusOr<std::optional<WaiterId>> KeyValueStore::Wait(std::span<const std::string_view> keys,
                                                            std::optional<TimePoint> deadline) {
  std::vector<std::string_view> missing;
  std::size_t bytes = 0;
  for (const std::string_view key : keys) {
    if (Exists(key)) continue;
    if (absl::Status status = CheckSizes("wait for", key, 0); !status.ok()) return status;
    missing.push_back(key);
    // Counts the key as if no other wait had named it: at worst a wait is refused a little early.
    bytes += key.size() + WaitList::kBytesPerPair;
  }
  if (missing.empty()) return std::nullopt;
  if (absl::Status status = CheckWaits(missing.front(), bytes); !status.ok()) return status;
  waits_.Add(++last_waiter_, missing, deadline);
  return last_waiter_;
}

absl::Status KeyValueStore::CheckSizes(absl::string_view attempt, std::string_view key,
                                       std::size_t value_bytes) const {
  if (key.size() > limits_.key_bytes) {
    return Exhausted(limits::kKeyBytes, attempt, key, "bytes of the key are", key.size(),
                     limits_.key_bytes);
  }
  if (value_bytes > limits_.value_bytes) {
    return Exhausted(limits::kValueBytes, attempt, key, "bytes of the value would be", value_bytes,
                     limits_.value_bytes);
  }
  return absl::OkStatus();
}

absl::Status KeyValueStore::CheckTotals(absl::string_view attempt, std::string_view key,
                                        std::size_t keys, std::size_t bytes) const {
  if (keys > limits_.keys) {
    return Exhausted(limits::kKeysOfJob, attempt, key, "keys of the job would be", keys,
                     limits_.keys);
  }
  if (bytes > limits_.total_bytes) {
    return Exhausted(limits::kStoreBytesOfJob, attempt, key,
                     "bytes of the job's keys and values would be", bytes, limits_.total_bytes);
  }
  const std::size_t share = bytes + keys * kBytesBesideKey;
  if (const ByteBudget* const budget = share_.ExceededBy(share)) {
    const bool is_part = budget->most() < limits::kStoreBytes.most;
    return Exhausted(is_part ? limits::kStoreBytesOfTenant : limits::kStoreBytes, attempt, key,
                     "bytes of all jobs' keys and values would be",
                     budget->taken() - share_.bytes() + share, budget->most());
  }
  return absl::OkStatus();
}

void KeyValueStore::TakeShare() {
  MUSTER_CHECK(!values_.empty() || bytes_ == 0);
  share_.Take(TotalBytes() + (values_.size() + queues_.size()) * kBytesBesideKey);
}

absl::Status KeyValueStore::CheckWrite(absl::string_view attempt, std::string_view key,
                                       const std::string* old_value,
                                       std::size_t value_bytes) const {
  if (absl::Status status = CheckSizes(attempt, key, value_bytes); !status.ok()) return status;
  const std::size_t keys = values_.size() + queues_.size();
  if (old_value != nullptr) {
    return CheckTotals(attempt, key, keys, TotalBytes() - old_value->size() + value_bytes);
  }
  return CheckTotals(attempt, key, keys + 1, TotalBytes() + key.size() + value_bytes);
}

absl::Status KeyValueStore::CheckWaits(std::string_view key, std::size_t bytes) const {
  if (NumWaits() >= limits_.waits) {
    return Exhausted(limits::kWaitsOfJob, "wait for", key, "pending waits would be", NumWaits() + 1,
                     limits_.waits);
  }
  const std::size_t sum = waits_.bytes() + barriers_.bytes() + meetings_.bytes() + bytes;
  if (sum > limits_.wait_bytes) {
    return Exhausted(limits::kWaitBytesOfJob, "wait for", key, "bytes of pending waits would be",
                     sum, limits_.wait_bytes);
  }
  return absl::OkStatus();
}

std::vector<std::string> KeyValueStore::TakeChangedKeys() {
  std::vector<std::string> keys(changed_.begin(), changed_.end());
  changed_.clear();
  return keys;
}

void KeyValueStore::Write(std::string_view key, std::string* old_value, std::string_view value) {
  if (old_value != nullptr) {
    MUSTER_CHECK(bytes_ >= old_value->size());
    bytes_ = bytes_ - old_value->size() + value.size();
    *old_value = value;
  } else {
    bytes_ += key.size() + value.size();
    values_.try_emplace(key, value);
    waits_.KeyCreated(key, completed_);
  }
  TakeShare();
  Track(key);
  Count(key, value);
}

void KeyValueStore::Count(std::string_view key, std::string_view value) {
  if (!barriers_.Contains(key)) return;
  const absl::StatusOr<std::int64_t> count = ParseStoredNumber(value);
  if (count.ok()) barriers_.Counted(key, *count, completed_);
}

absl::StatusOr<std::int64_t> ParseStoredNumber(std::string_view text) {
  while (!text.empty() && absl::ascii_isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  // from_chars takes a minus, but no plus.
  const bool plus = !text.empty() && text.front() == '+';
  if (plus) text.remove_prefix(1);
  std::int64_t number = 0;
  const std::errc error = std::from_chars(text.data(), text.data() + text.size(), number).ec;
  if (error == std::errc::invalid_argument || (plus && text.front() == '-')) {
    return absl::FailedPreconditionError("the value is not a number");
  }
  if (error != std::errc()) return absl::OutOfRangeError("the value does not fit in 64 bits");
  return number;
}

std::int64_t AddStoredNumbers(std::int64_t a, std::int64_t b) {
  // Unsigned, because signed overflow is undefined.
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

}  // namespace muster::rendezvous
