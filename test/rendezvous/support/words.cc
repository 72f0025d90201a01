#include "test/rendezvous/support/words.h"

#include <gtest/gtest.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace muster::rendezvous {

Words::Words(const std::vector<std::string>& words) : command_(words.front()) {
  for (size_t i = 1; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    if (equals == std::string::npos) {
      positional_.push_back(words[i]);
    } else {
      named_.emplace_back(words[i].substr(0, equals), words[i].substr(equals + 1));
    }
  }
}

std::string Words::At(size_t i) const {
  if (i < positional_.size()) return positional_[i];
  ADD_FAILURE() << command_ << ": word " << i << " is missing";
  return "";
}

std::optional<std::string> Words::Find(const std::string& name) const {
  for (const auto& [key, value] : named_) {
    if (key == name) return value;
  }
  return std::nullopt;
}

std::string Words::Get(const std::string& name, const std::string& otherwise) const {
  return Find(name).value_or(otherwise);
}

int Words::Get(const std::string& name, int otherwise) const {
  const std::optional<std::string> text = Find(name);
  if (!text) return otherwise;
  int number = 0;
  EXPECT_TRUE(absl::SimpleAtoi(*text, &number)) << command_ << ": " << name << "=" << *text;
  return number;
}

Duration Words::GetMs(const std::string& name, Duration otherwise) const {
  const std::optional<std::string> text = Find(name);
  if (!text) return otherwise;
  std::int64_t ms = 0;
  EXPECT_TRUE(absl::SimpleAtoi(*text, &ms)) << command_ << ": " << name << "=" << *text;
  return std::chrono::milliseconds(ms);
}

NodeInfo NodeFrom(const std::string& name, const Words& words) {
  NodeInfo node;
  node.node_id = name;
  node.host = name;
  node.address = words.Get("address", absl::StrCat("10.0.0.", name[0] - 'a' + 1));
  node.master_port = static_cast<std::uint16_t>(words.Get("port", 40'000 + name[0] - 'a' + 1));
  node.slots = words.Get("slots", 1);
  if (words.Has("hint")) node.rank_hint = words.Get("hint", 0);
  node.role = words.Get("role", "default");
  node.serves_store = words.Has("serves");
  if (words.Has("also")) node.addresses = absl::StrSplit(words.Get("also", ""), '/');
  if (words.Has("topology")) node.topology = absl::StrSplit(words.Get("topology", ""), '/');
  return node;
}

JobSettings SettingsFrom(const Words& words) {
  JobSettings settings;
  const std::vector<std::string> nodes = absl::StrSplit(words.Get("nodes", "1"), ':');
  EXPECT_TRUE(absl::SimpleAtoi(nodes.front(), &settings.min_nodes));
  EXPECT_TRUE(absl::SimpleAtoi(nodes.back(), &settings.max_nodes));
  settings.last_call = words.GetMs("last_call", std::chrono::seconds(5));
  settings.join_timeout = words.GetMs("join_timeout", std::chrono::seconds(60));
  settings.lease = words.GetMs("lease", Duration::zero());
  settings.keep_alive = words.GetMs("beat", Duration::zero());
  settings.max_restarts = words.Get("restarts", 0);
  settings.exact_ranks = words.Has("exact");
  settings.store_tunnel = words.Has("tunnel");
  if (words.Has("later")) settings.scale_up = ScaleUp::kNextRestart;
  settings.restart.window = words.GetMs("window", Duration::zero());
  settings.restart.delay = words.GetMs("delay", Duration::zero());
  settings.restart.longest_delay = words.GetMs("longest_delay", settings.restart.delay);
  settings.restart.no_progress_limit = words.Get("no_progress", 0);
  settings.straggler_threshold = words.Get("straggler", 0) / 100.0;
  return settings;
}

std::string DeadlineText(std::optional<TimePoint> deadline) {
  if (!deadline) return "none";
  return absl::StrCat("@", deadline->time_since_epoch() / std::chrono::milliseconds(1));
}

}  // namespace muster::rendezvous
