// What is known of all the hosts of a job where its command was typed, and what follows from it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "launcher/tree/host_news.h"

namespace muster::launcher {

// A machine without I/O or clock. It says when the nodes begin, which is when it is known where
// their rendezvous is: on the first host of the list, or, once that has been given up, on the next.
// It says when the job cannot begin or go on, and when it is over. FanOut tries hosts again by
// itself.
class RollCall {
 public:
  struct Options {
    // What the hosts are called in sentences.
    std::vector<std::string> names;
    int min_nodes = 1;
    // The rendezvous is on one of the hosts. Otherwise it is elsewhere, or there is none.
    bool serves_rendezvous = true;
  };

  // All nodes are to start. `endpoint` is that of the host that serves; empty if none does.
  struct Begin {
    std::string endpoint;
  };
  // To be said on the terminal.
  struct Say {
    std::string sentence;
  };
  // There will be no job, or no longer: what runs is to be stopped.
  struct Fail {
    std::string sentence;
  };
  // Some node has ended in a way in which the others must end soon, too: those that have not after
  // a while are to be stopped.
  struct ExpectEnd {
    std::string sentence;  // to be said then
  };
  // No node is left.
  struct Finish {};
  using Action = std::variant<Begin, Say, Fail, ExpectEnd, Finish>;
  using Actions = std::vector<Action>;

  explicit RollCall(Options options);

  Actions On(const HostNews& news);

  // The job's exit code, as it is known by now: that of the host that serves the rendezvous if it
  // is not 0, else the first that is not.
  int exit_code() const;
  // Whose code and report that is.
  HostIndex deciding_host() const;
  // The host that serves; none before Begin, or where none serves.
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
