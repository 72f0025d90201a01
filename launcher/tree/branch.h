// The part of a launch tree that hangs on this process: what FanOut decides, done.
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
#include "launcher/environment.h"
#include "launcher/hosts/link_command.h"
#include "launcher/tree/fan_out.h"
#include "launcher/tree/link.h"
#include "proto/launch.pb.h"

namespace muster::launcher {

// The process where the command was typed has one, and so has each host that starts others. Lives
// on the loop's main thread.
class Branch {
 public:
  struct Callbacks {
    // To be passed on upwards, or to be counted where the command was typed.
    std::function<void(const HostNews&)> on_news;
    // Bytes that a host beyond has written.
    std::function<void(const launch::v1::Output&)> on_output;
    // As Link's.
    std::function<bool()> has_room;
  };

  // `job` must outlive it. `program` is the path of this program.
  Branch(boost::asio::io_context& io, const launch::v1::Job& job, std::string program,
         Callbacks callbacks);
  Branch(const Branch&) = delete;
  Branch& operator=(const Branch&) = delete;

  // Starts hosts, here or beyond.
  void Adopt(const std::vector<launch::v1::Host>& hosts);

  // The nodes of all hosts beyond start, now or when their hosts have answered.
  void Begin(const std::string& endpoint);

  // The terminals where the command was typed have these sizes by now.
  void Resize(const launch::v1::Terminals& terminals);

  // For the nodes of all hosts that have answered. If it ends the job, nothing is started any more.
  void Signal(int number, bool ends_job);

  // To the standard input of the nodes of all hosts that have answered, whole lines.
  void Tell(const std::string& lines);

  // Starts nothing any more, and ends all that is beyond. `on_gone` runs once, from the loop, when
  // no link is left; links that are still there after `limit` are killed.
  void Close(std::chrono::milliseconds limit, std::function<void()> on_gone);

  // There is room again.
  void Resume();

 private:
  void Do(const FanOut::Actions& actions);
  void Do(const FanOut::Open& open);
  void Do(const FanOut::Hand& hand);
  void Do(const FanOut::Close& close);
  void Do(const HostNews& news);
  // What connects to the host, which is called so where it says nothing itself.
  struct Way {
    std::string name;
    std::vector<std::string> argv;
  };
  Way WayTo(HostIndex host, ProgramSource source) const;
  // False where the child process cannot be started; then the link is over.
  bool Connect(FanOut::LinkId id, ProgramSource source);
  void OnGreeting(FanOut::LinkId id);
  void OnWhich(FanOut::LinkId id, const std::string& machine);
  void OnSend(FanOut::LinkId id);
  void OnMessage(FanOut::LinkId id, const launch::v1::Up& message);
  void OnAnswer(FanOut::LinkId id, const launch::v1::Answer& answer);
  // The link is over; once control is back in the loop.
  void EndLink(FanOut::LinkId id, const std::string& reason);
  void ToAnswered(const launch::v1::Down& message);
  void Stop();
  void Arm();
  void Beat();
  // Ends links from which nothing has come for too long: not every way to a host notices by itself
  // that its other end is gone, as ssh does.
  void EndSilentLinks(std::chrono::steady_clock::time_point due);
  void CheckGone();

  boost::asio::io_context& io_;
  const launch::v1::Job& job_;
  const std::string program_;
  const Environment environment_;
  const Callbacks callbacks_;

  FanOut fan_out_;
  // What FanOut decided before it was stopped counts no more: what follows from news may stop it.
  bool stopped_ = false;
  // Those that FanOut was given, by index.
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
  // Those that ended before Muster ran there: the shell may not have understood what it was given.
  std::set<HostIndex> without_muster_;
  std::optional<std::string> endpoint_;
  // As they are now, where that is not what the job says.
  std::optional<launch::v1::Terminals> resized_;
  // Of this program, once some host has asked for them.
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
