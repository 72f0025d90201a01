// What the root of a launch tree knows of all hosts, and decides from it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "launcher/remote/fan_out.h"

namespace muster::launcher {

// A state machine without I/O or clock. Decides when the nodes start, which is once their
// rendezvous is known: on the first host of the list or, if that is given up, on the next. Decides
// when the job cannot start or continue, and when it is over. FanOut retries hosts by itself.
class LaunchState {
 public:
  struct Options {
    // The hosts' names in messages.
    std::vector<std::string> names;
    int min_nodes = 1;
    // The rendezvous runs on one of the hosts. Otherwise it is elsewhere, or there is none.
    bool serves_rendezvous = true;
  };

  // Start all nodes. `endpoint` is that of the serving host; empty if none serves.
  struct Begin {
    std::string endpoint;
  };
  // Print this on the terminal.
  struct Say {
    std::string sentence;
  };
  // The job cannot start or continue: stop what runs.
  struct Fail {
    std::string sentence;
  };
  // A node exited in a way that makes the others exit soon, too: after a while, stop those that
  // have not.
  struct ExpectEnd {
    std::string sentence;  // print it then
  };
  // No node is left.
  struct Finish {};
  using Action = std::variant<Begin, Say, Fail, ExpectEnd, Finish>;
  using Actions = std::vector<Action>;

  explicit LaunchState(Options options);

  Actions On(const HostNews& news);

  // The job's exit code so far: that of the host that serves the rendezvous if it is not 0, else
  // the first that is not 0.
  int exit_code() const;
  // The host whose exit code and report are the job's.
  HostIndex deciding_host() const;
  // The host with the rendezvous; nullopt before Begin, or if none serves.
  std::optional<HostIndex> serving_host() const { return serving_; }
  bool has_begun() const { return begun_; }

 private:
  enum class State { kAwaited, kUp, kUnreachable, kEnded };
  struct Host {
    State state = State::kAwaited;
    std::string endpoint;
    int exit_code = 0;
  };

  std::size_t Count(State state) const;
  const std::string& Name(HostIndex host) const {
    return options_.names[static_cast<std::size_t>(host)];
  }
  void MaybeBegin(Actions& actions);
  void OnUnreachable(const HostNews& news, Actions& actions);
  void OnEnded(const HostNews& news, Actions& actions);

  const Options options_;
  std::vector<Host> hosts_;
  std::vector<std::size_t> counts_;
  std::optional<HostIndex> serving_;
  std::optional<HostIndex> first_failed_;
  bool begun_ = false;
  bool failed_ = false;
  bool expects_end_ = false;
};

}  // namespace muster::launcher
