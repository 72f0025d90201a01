// One process's part of a launch tree: carries out what FanOut decides.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/lifetime.h"
#include "launcher/machine/environment.h"
#include "launcher/remote/fan_out.h"
#include "launcher/remote/link.h"
#include "launcher/remote/link_command.h"
#include "proto/launch.pb.h"

namespace muster::launcher {

// Both the root, where the command was typed, and each host that starts others have one. Lives on
// the loop's main thread.
class Branch {
 public:
  struct Callbacks {
    // To pass on upwards, or to count at the root.
    std::function<void(const HostNews&)> on_news;
    // Output of a host below.
    std::function<void(const launch::v1::Output&)> on_output;
    // As in Link.
    std::function<bool()> has_room;
  };

  // `job` must outlive it. `program` is the path of this program.
  Branch(boost::asio::io_context& io, const launch::v1::Job& job, std::string program,
         Callbacks callbacks);
  Branch(const Branch&) = delete;
  Branch& operator=(const Branch&) = delete;

  // Starts hosts, from here or through other hosts.
  void Adopt(const std::vector<launch::v1::Host>& hosts);

  // Starts the nodes of all hosts below, now or once they have answered.
  void Begin(const std::string& endpoint);

  // New sizes of the root's terminals.
  void Resize(const launch::v1::Terminals& terminals);

  // Sends a signal to the nodes of all hosts that have answered. If it ends the job, no more hosts
  // are started.
  void Signal(int number, bool ends_job);

  // Writes whole lines to the standard input of the nodes of all hosts that have answered.
  void Tell(const std::string& lines);

  // Starts no more hosts, and ends everything below. `on_gone` runs once, from the loop, when no
  // link is left; links that remain after `limit` are killed.
  void Close(std::chrono::milliseconds limit, std::function<void()> on_gone);

  // Reads again after has_room() was false.
  void Resume();

 private:
  void Do(const FanOut::Actions& actions);
  void Do(const FanOut::Open& open);
  void Do(const FanOut::Hand& hand);
  void Do(const FanOut::Close& close);
  void Do(const HostNews& news);
  // The command that connects to a host, and its name for error messages.
  struct Route {
    std::string name;
    std::vector<std::string> argv;
  };
  Route RouteTo(HostIndex host, ProgramSource source) const;
  // False if the child process cannot be started; the link is then over.
  bool Connect(FanOut::LinkId id, ProgramSource source);
  void OnGreeting(FanOut::LinkId id);
  void OnWhich(FanOut::LinkId id, const std::string& machine);
  void OnSend(FanOut::LinkId id);
  void OnMessage(FanOut::LinkId id, const launch::v1::Up& message);
  void OnAnswer(FanOut::LinkId id, const launch::v1::Answer& answer);
  // Ends the link, once control is back in the loop.
  void EndLink(FanOut::LinkId id, const std::string& reason);
  void ToAnswered(const launch::v1::Down& message);
  void Stop();
  void Arm();
  void Beat();
  // Ends links that have been silent for too long: unlike ssh, not every command notices that its
  // host is gone.
  void EndSilentLinks(std::chrono::steady_clock::time_point due);
  void CheckGone();

  boost::asio::io_context& io_;
  const launch::v1::Job& job_;
  const std::string program_;
  const Environment environment_;
  const Callbacks callbacks_;

  FanOut fan_out_;
  // After Stop(), decisions that FanOut made before are ignored; handling its news may call Stop().
  bool stopped_ = false;
  // The hosts given to FanOut, by index.
  std::map<HostIndex, launch::v1::Host> hosts_;
  struct Connection {
    HostIndex host = 0;
    ProgramSource source = ProgramSource::kInstalled;
    std::unique_ptr<Link> link;
    // Muster runs there.
    bool is_greeted = false;
    bool has_answered = false;
    std::chrono::steady_clock::time_point last_heard;
  };
  std::map<FanOut::LinkId, Connection> connections_;
  // Hosts whose link ended before Muster ran there: their login shell may not understand the usual
  // command.
  std::set<HostIndex> without_muster_;
  std::optional<std::string> endpoint_;
  // The terminals' sizes if they have changed since the job was described.
  std::optional<launch::v1::Terminals> resized_;
  // This program, computed when a host first asks for it.
  std::string program_hash_;
  std::shared_ptr<const std::string> packed_program_;
  std::function<void()> on_gone_;
  boost::asio::steady_timer timer_;
  boost::asio::steady_timer beat_;
  bool beats_ = false;
  boost::asio::steady_timer limit_;
  base::Lifetime lifetime_;
};

}  // namespace muster::launcher
