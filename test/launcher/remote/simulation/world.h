// The world of the launch tree's simulation: see simulation.h.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "launcher/remote/fan_out.h"
#include "test/launcher/remote/simulation/simulation.h"
#include "test/rendezvous/simulation/random.h"
#include "test/rendezvous/simulation/trace.h"

namespace muster::launcher {

using Time = FanOut::Time;
using Duration = FanOut::Time::duration;

class World {
 public:
  explicit World(const SimulationOptions& options);

  SimulationResult Run();

 private:
  struct Process;

  // One attempt at a host, and the connection that may result.
  struct Link {
    std::weak_ptr<Process> parent;
    FanOut::LinkId id = 0;
    HostIndex host = 0;
    // The process at the other end, while it runs.
    std::weak_ptr<Process> child;
    // Broken, though neither end may know.
    bool cut = false;
    // Closed by the parent, or its end was noticed there.
    bool over = false;
    // Arrival of the last message in each direction: messages keep their order.
    Time down{}, up{};
  };

  // A process of the tree: the root, or Muster on a host.
  struct Process {
    Process(HostIndex at, const FanOut::Options& options) : host(at), fan_out(options) {}

    HostIndex host;
    FanOut fan_out;
    std::shared_ptr<Link> uplink;  // null: the root
    std::map<FanOut::LinkId, std::shared_ptr<Link>> links;
    std::optional<Time> timer;
    bool ending = false;
    bool node_runs = true;
  };
  using ProcessPtr = std::shared_ptr<Process>;
  using LinkPtr = std::shared_ptr<Link>;

  struct Host {
    bool dead = false;
    // The job's process on the host, even while it is stopping.
    std::weak_ptr<Process> occupant;
    // The root's last news.
    std::optional<HostNews> told;
    int ends_told = 0;
    // Open attempts.
    std::vector<LinkPtr> attempts;
  };

  struct Event {
    Time at;
    std::int64_t number;
    std::function<void()> what;
    bool operator<(const Event& other) const {
      return at != other.at ? at > other.at : number > other.number;
    }
  };

  void After(Duration delay, std::function<void()> what);
  void RunUntil(Time end);
  bool Failed() const { return !result_.failure.empty(); }
  void Violated(const std::string& what);
  void Note(const std::string& line);
  void Happened(const std::string& what) { ++result_.happenings[what]; }

  // Carries out the decisions of a process's FanOut.
  void Do(const ProcessPtr& process, const FanOut::Actions& actions);
  void Arm(const ProcessPtr& process);
  void OpenLink(const ProcessPtr& process, const FanOut::Open& open);
  void Attempt(const LinkPtr& link);
  void StartProcess(const LinkPtr& link, bool dies_at_once);
  void CloseLink(const LinkPtr& link);
  // Notifies the parent that the link has ended.
  void TellEnd(const LinkPtr& link, const std::string& reason, Duration delay);
  void Send(const LinkPtr& link, bool down, std::function<void(const ProcessPtr&)> deliver);
  void TellUp(const ProcessPtr& process, const HostNews& news);
  void TellRoot(const HostNews& news);
  // The process noticed that its parent is gone, or was killed.
  void End(const ProcessPtr& process, bool at_once);
  void SomethingBreaks();
  bool IsConnected(const ProcessPtr& process) const;
  int Depth(const ProcessPtr& process) const;
  ProcessPtr SomeProcess();

  void CheckLinks(const ProcessPtr& process);
  void CheckEverythingIsAsTold();
  void CheckNothingIsLeft();

  const SimulationOptions options_;
  rendezvous::Random random_;
  rendezvous::Trace trace_;
  SimulationResult result_;
  FanOut::Options fan_out_options_;
  // Whether faults are injected.
  bool faulty_ = true;
  int faults_in_1000_ = 0;
  Duration longest_silence_{};

  Time now_{};
  std::int64_t numbers_ = 0;
  std::priority_queue<Event> events_;
  ProcessPtr root_;
  std::vector<Host> hosts_;
  // All running processes by host, without the root.
  std::map<HostIndex, std::vector<ProcessPtr>> running_;
};

}  // namespace muster::launcher
