// Records what a client tells its listener, so that tests can wait for it and compare it.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "rendezvous/client/rendezvous_client.h"
#include "test/rendezvous/support/directive_text.h"

namespace muster::rendezvous {

struct RecordingListener : RendezvousClient::Listener {
  void OnDirective(const Directive& directive) override {
    log.push_back(DirectiveText(directive));
    directives.push_back(directive);
  }
  void OnTrouble(const std::string& trouble) override { log.push_back("trouble: " + trouble); }
  void OnOutOfTouch(const std::string& cause) override { log.push_back("out of touch: " + cause); }
  void OnBackInTouch(Duration) override { log.push_back("back in touch"); }
  void OnDeadline(std::optional<TimePoint> deadline) override { last_deadline = deadline; }
  void OnFenced(const std::string& why) override { log.push_back("fenced: " + why); }
  void OnLost(const absl::Status& status) override {
    log.push_back("lost: " + std::string(status.message()));
  }

  Progress TakeProgress(bool /*all*/) override { return progress; }

  // The number of lines that begin with `start`.
  int Count(const std::string& start) const {
    return static_cast<int>(std::count_if(log.begin(), log.end(), [&](const std::string& line) {
      return absl::StartsWith(line, start);
    }));
  }
  bool Heard(const std::string& start) const { return Count(start) > 0; }

  // The latest directive of this kind; null if there was none.
  template <typename Kind>
  const Kind* Last() const {
    for (auto i = directives.rbegin(); i != directives.rend(); ++i) {
      if (const Kind* kind = std::get_if<Kind>(&*i)) return kind;
    }
    return nullptr;
  }

  // In order: directives as directive_text.h writes them, and "trouble: ...", "out of touch: ...",
  // "back in touch", "fenced: ..." and "lost: ...".
  std::vector<std::string> log;
  std::vector<Directive> directives;
  std::optional<TimePoint> last_deadline;
  // What the node's ranks tell, each time that it is asked.
  Progress progress;
};

}  // namespace muster::rendezvous
