// Reading a transcript's command: positional words, and NAME=VALUE words.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/core/types.h"

namespace muster::rendezvous {

class Words {
 public:
  // `words` as a TranscriptStep gets them: the command first.
  explicit Words(const std::vector<std::string>& words);

  const std::string& command() const { return command_; }
  // How many words without '=' there are.
  size_t size() const { return positional_.size(); }
  // Those words, in order; the test fails when there is no i-th.
  std::string At(size_t i) const;
  bool Has(const std::string& name) const { return Find(name).has_value(); }
  // The value of NAME=..., or the default.
  std::string Get(const std::string& name, const std::string& otherwise) const;
  int Get(const std::string& name, int otherwise) const;
  Duration GetMs(const std::string& name, Duration otherwise) const;

 private:
  std::optional<std::string> Find(const std::string& name) const;

  std::string command_;
  std::vector<std::string> positional_;
  std::vector<std::pair<std::string, std::string>> named_;
};

// The node that a transcript calls `name`: host and node id are the name, its address 10.0.0.<n>
// for the n-th letter of the alphabet unless address= says otherwise; slots=, hint=, role=,
// topology=a/b, port=.
NodeInfo NodeFrom(const std::string& name, const Words& words);

// nodes=MIN:MAX or nodes=N, last_call=, join_timeout=, lease=, beat= (ms), restarts=.
JobSettings SettingsFrom(const Words& words);

// "@1500": a deadline as transcripts write it; "none" without one.
std::string DeadlineText(std::optional<TimePoint> deadline);

}  // namespace muster::rendezvous
