#include "launcher/flags/rdzv_conf.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/seconds.h"

namespace muster::launcher {
namespace {

using std::chrono::milliseconds;
using Entries = std::map<std::string, std::string, std::less<>>;

absl::StatusOr<Entries> ReadEntries(absl::string_view text) {
  if (text.size() >= 2 && text.front() == text.back() &&
      (text.front() == '\'' || text.front() == '"')) {
    text = text.substr(1, text.size() - 2);
  }
  Entries entries;
  if (absl::StripAsciiWhitespace(text).empty()) return entries;
  for (const absl::string_view entry : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(entry, absl::MaxSplits('=', 1));
    const absl::string_view key = absl::StripAsciiWhitespace(parts.first);
    const absl::string_view value = absl::StripAsciiWhitespace(parts.second);
    if (key.empty() || value.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "has an entry '", entry, "' without key or value; write KEY=VALUE,KEY=VALUE"));
    }
    entries[std::string(key)] = std::string(value);
  }
  return entries;
}

// The value of the first of `keys` that is there; nothing when none is.
absl::StatusOr<std::optional<milliseconds>> ReadTimeout(
    const Entries& entries, std::initializer_list<absl::string_view> keys) {
  for (const absl::string_view key : keys) {
    const auto found = entries.find(key);
    if (found == entries.end()) continue;
    const auto duration = base::ParseSeconds(found->second);
    if (!duration || *duration <= milliseconds::zero()) {
      return absl::InvalidArgumentError(
          absl::StrCat("has a bad ", key, "; give it a number of seconds above 0"));
    }
    return duration;
  }
  return std::optional<milliseconds>();
}

absl::StatusOr<std::optional<int>> ReadAttempts(const Entries& entries) {
  const auto found = entries.find("keep_alive_max_attempt");
  if (found == entries.end()) return std::optional<int>();
  int attempts = 0;
  if (!absl::SimpleAtoi(found->second, &attempts) || attempts < 1 || attempts > 1000) {
    return absl::InvalidArgumentError(
        "has a bad keep_alive_max_attempt; give it a number from 1 to 1000");
  }
  return std::optional<int>(attempts);
}

absl::StatusOr<std::optional<bool>> ReadBool(const Entries& entries, absl::string_view key) {
  const auto found = entries.find(key);
  if (found == entries.end()) return std::optional<bool>();
  const std::string text = absl::AsciiStrToLower(found->second);
  for (const absl::string_view yes : {"1", "true", "t", "yes", "y"}) {
    if (text == yes) return std::optional<bool>(true);
  }
  for (const absl::string_view no : {"0", "false", "f", "no", "n"}) {
    if (text == no) return std::optional<bool>(false);
  }
  return absl::InvalidArgumentError(absl::StrCat("has a bad ", key, "; give it 1 or 0"));
}

}  // namespace

absl::StatusOr<RdzvConf> ParseRdzvConf(absl::string_view text) {
  const auto entries = ReadEntries(text);
  if (!entries.ok()) return entries.status();
  const auto join = ReadTimeout(*entries, {"join_timeout", "timeout"});
  if (!join.ok()) return join.status();
  const auto last_call = ReadTimeout(*entries, {"last_call_timeout"});
  if (!last_call.ok()) return last_call.status();
  const auto lease = ReadTimeout(*entries, {"lease_timeout", "lease"});
  if (!lease.ok()) return lease.status();
  const auto interval = ReadTimeout(*entries, {"keep_alive_interval"});
  if (!interval.ok()) return interval.status();
  const auto attempts = ReadAttempts(*entries);
  if (!attempts.ok()) return attempts.status();
  const auto connect = ReadTimeout(*entries, {"connect_timeout", "read_timeout"});
  if (!connect.ok()) return connect.status();

  const auto reconnect = ReadTimeout(*entries, {"reconnect_timeout"});
  if (!reconnect.ok()) return reconnect.status();

  const auto is_host = ReadBool(*entries, "is_host");
  if (!is_host.ok()) return is_host.status();
  const auto trust_refusals = ReadBool(*entries, "trust_refusals");
  if (!trust_refusals.ok()) return trust_refusals.status();
  const auto store_type = entries->find("store_type");
  if (store_type != entries->end() && store_type->second != "tcp") {
    return absl::InvalidArgumentError(
        "asks for a store_type other than tcp, and Muster has no other; leave it out and give an "
        "endpoint HOST:PORT");
  }

  RdzvConf conf;
  conf.is_host = *is_host;
  conf.trust_refusals = trust_refusals->value_or(false);
  RendezvousTimeouts& timeouts = conf.timeouts;
  conf.join_given = join->has_value();
  timeouts.join = join->value_or(timeouts.join);
  timeouts.last_call = last_call->value_or(timeouts.last_call);
  timeouts.connect = connect->value_or(timeouts.connect);
  timeouts.reconnect = reconnect->value_or(timeouts.reconnect);
  if (lease->has_value()) {
    timeouts.lease = **lease;
  } else if (interval->has_value() || attempts->has_value()) {
    timeouts.lease = interval->value_or(std::chrono::seconds(5)) * attempts->value_or(3);
  }
  timeouts.keep_alive_interval =
      std::max(milliseconds(1),
               std::min(interval->value_or(timeouts.keep_alive_interval), timeouts.lease / 3));
  return conf;
}

}  // namespace muster::launcher
