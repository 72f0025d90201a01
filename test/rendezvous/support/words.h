// Parses a transcript's command: positional words and NAME=VALUE words.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/core/values/types.h"

namespace muster::rendezvous {

class Words {
 public:
  // `words` are those passed to a TranscriptStep: the command first.
  explicit Words(const std::vector<std::string>& words);

  const std::string& command() const { return command_; }
  // The number of words without '='.
  size_t size() const { return positional_.size(); }
  // The i-th of these words. Fails the test if there is none.
  std::string At(size_t i) const;
  bool Has(const std::string& name) const { return Find(name).has_value(); }
  // The value of NAME=..., or `otherwise`.
  std::string Get(const std::string& name, const std::string& otherwise) const;
  int Get(const std::string& name, int otherwise) const;
  Duration GetMs(const std::string& name, Duration otherwise) const;

 private:
  std::optional<std::string> Find(const std::string& name) const;

  std::string command_;
  std::vector<std::string> positional_;
  std::vector<std::pair<std::string, std::string>> named_;
};

// The node called `name` in a transcript. Its host and node ID are the name; its address is
// 10.0.0.<n> for the n-th letter of the alphabet, unless address= is given. Also reads slots=,
// hint=, role=, topology=a/b, also=ADDRESS/ADDRESS, port= and the word "serves".
NodeInfo NodeFrom(const std::string& name, const Words& words);

// Reads nodes=MIN:MAX or nodes=N, last_call=, join_timeout=, lease=, beat=, window=, delay=,
// longest_delay= (all but the first in ms), restarts=, no_progress=, straggler= (in %), and the
// words "exact", "later" and "tunnel".
JobSettings SettingsFrom(const Words& words);

// A deadline as in transcripts: "@1500", or "none".
std::string DeadlineText(std::optional<TimePoint> deadline);

}  // namespace muster::rendezvous
