#include "launcher/remote/branch.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <cstddef>
#include <utility>
#include <variant>

#include <boost/asio/post.hpp>

#include "absl/strings/str_cat.h"
#include "base/version.h"
#include "launcher/remote/launch_wire.h"
#include "launcher/remote/own_program.h"
#include "rendezvous/core/values/phrases.h"

namespace muster::launcher {
namespace {

// Skip keep-alives to a host that is this far behind in reading.
constexpr std::size_t kMaxPendingForBeat = 64 * 1024;

FanOut::Options OptionsOf(const launch::v1::Job& job) {
  FanOut::Options options;
  options.fanout = job.fanout();
  options.answer_timeout = std::chrono::milliseconds(job.answer_timeout_ms());
  // A question must be answered within the time of its answers.
  if (job.question_size() > 0) options.limit = options.answer_timeout;
  if (job.min_nodes() < job.max_nodes()) options.retry = std::chrono::seconds(30);
  return options;
}

}  // namespace

Branch::Branch(boost::asio::io_context& io, const launch::v1::Job& job, std::string program,
               Callbacks callbacks)
    : io_(io),
      job_(job),
      program_(std::move(program)),
      environment_(ReadEnvironment(environ)),
      callbacks_(std::move(callbacks)),
      fan_out_(OptionsOf(job)),
      timer_(io),
      beat_(io),
      limit_(io) {}

void Branch::Adopt(const std::vector<launch::v1::Host>& hosts) {
  std::vector<FanOut::Charge> charges;
  for (const launch::v1::Host& host : hosts) {
    hosts_.emplace(host.index(), host);
    charges.push_back(ToCharge(host));
  }
  Do(fan_out_.Adopt(charges, FanOut::Time::clock::now()));
}

void Branch::Begin(const std::string& endpoint) {
  endpoint_ = endpoint;
  launch::v1::Down begin;
  begin.mutable_begin()->set_endpoint(endpoint);
  ToAnswered(begin);
}

void Branch::Resize(const launch::v1::Terminals& terminals) {
  resized_ = terminals;
  launch::v1::Down resize;
  *resize.mutable_resize() = terminals;
  ToAnswered(resize);
}

void Branch::Signal(int number, bool ends_job) {
  if (ends_job) Stop();
  launch::v1::Down signal;
  signal.mutable_signal()->set_number(number);
  signal.mutable_signal()->set_ends_job(ends_job);
  ToAnswered(signal);
}

void Branch::Tell(const std::string& lines) {
  launch::v1::Down input;
  input.mutable_input()->set_data(lines);
  ToAnswered(input);
}

void Branch::Close(std::chrono::milliseconds limit, std::function<void()> on_gone) {
  on_gone_ = std::move(on_gone);
  Stop();
  for (auto& [id, connection] : connections_) {
    if (connection.link != nullptr) connection.link->CloseInput();
  }
  limit_.expires_after(limit);
  limit_.async_wait(lifetime_.Guard([this](boost::system::error_code error) {
    if (error) return;
    connections_.clear();
    CheckGone();
  }));
  CheckGone();
}

void Branch::Resume() {
  for (auto& [id, connection] : connections_) {
    if (connection.link != nullptr) connection.link->Resume();
  }
}

void Branch::Do(const FanOut::Actions& actions) {
  for (const FanOut::Action& action : actions) {
    std::visit([this](const auto& one) { Do(one); }, action);
  }
  Arm();
}

void Branch::Do(const FanOut::Open& open) {
  if (stopped_) return;
  connections_[open.link].host = open.host;
  Connect(open.link, job_.ships() ? ProgramSource::kInstalledOrShipped : ProgramSource::kInstalled);
  if (!std::exchange(beats_, true)) Beat();
}

Branch::Route Branch::RouteTo(HostIndex index, ProgramSource source) const {
  const launch::v1::Host& charge = hosts_.at(index);
  const Host host = ToHost(charge);
  const bool failed = charge.failures() > 0 || without_muster_.contains(index);
  // Text around the command, such as a variable before it or && after it, may require it to be a
  // single simple command.
  const bool is_ssh = job_.launch_with().empty();
  const std::string command =
      RemoteCommand(program_, source, is_ssh && !failed ? LoginShell::kUsual : LoginShell::kAny);
  if (!is_ssh) {
    // It was validated when the command line was parsed.
    const auto words = ParseLaunchWith(job_.launch_with()).value();
    std::vector<std::string> argv = LaunchWithCommand(words, host, command);
    std::string name = argv.front();
    return {.name = std::move(name), .argv = std::move(argv)};
  }
  // After a failure do not reuse a connection: the host may have lost power since.
  const std::chrono::milliseconds persist(failed ? 0 : job_.ssh_control_persist_ms());
  const auto kept = FindKeptConnections(persist, environment_);
  return {.name = "ssh", .argv = SshCommand(host, command, kept)};
}

bool Branch::Connect(FanOut::LinkId id, ProgramSource source) {
  Connection& connection = connections_.at(id);
  connection.source = source;
  Route route = RouteTo(connection.host, source);
  auto link =
      Link::Start(io_, std::move(route.name), std::move(route.argv), ToBlock(environment_),
                  {.on_greeting = [this, id] { OnGreeting(id); },
                   .on_which = [this, id](const std::string& machine) { OnWhich(id, machine); },
                   .on_send = [this, id] { OnSend(id); },
                   .on_message = [this, id](const launch::v1::Up& up) { OnMessage(id, up); },
                   .on_end = [this, id](const std::string& reason) { EndLink(id, reason); },
                   .has_room = callbacks_.has_room});
  if (!link.ok()) {
    EndLink(id, std::string(link.status().message()));
    return false;
  }
  connection.link = *std::move(link);
  return true;
}

void Branch::OnGreeting(FanOut::LinkId id) {
  Connection& connection = connections_.at(id);
  connection.is_greeted = true;
  launch::v1::Down down;
  *down.mutable_setup()->mutable_job() = job_;
  *down.mutable_setup()->mutable_self() = hosts_.at(connection.host);
  connection.link->Send(down);
}

void Branch::OnWhich(FanOut::LinkId id, const std::string& machine) {
  utsname own = {};
  ::uname(&own);
  if (machine != own.machine) {
    return EndLink(id, absl::StrCat("its processor is ", machine, ", but this muster is built for ",
                                    own.machine, "; install one that fits there"));
  }
  if (program_hash_.empty()) {
    auto hash = HashOwnProgram();
    if (!hash.ok()) return EndLink(id, std::string(hash.status().message()));
    program_hash_ = *std::move(hash);
  }
  connections_.at(id).link->Answer(program_hash_);
}

void Branch::OnSend(FanOut::LinkId id) {
  if (packed_program_ == nullptr) {
    auto packed = PackOwnProgram();
    if (!packed.ok()) return EndLink(id, std::string(packed.status().message()));
    packed_program_ = std::make_shared<const std::string>(*std::move(packed));
  }
  connections_.at(id).link->SendProgram(packed_program_);
}

void Branch::Do(const FanOut::Hand& hand) {
  if (stopped_) return;
  launch::v1::Down down;
  for (const FanOut::Charge& charge : hand.charges) {
    launch::v1::Host& host = *down.mutable_adopt()->add_hosts();
    host = hosts_.at(charge.host);
    host.set_failures(charge.failures);
    host.set_told_unreachable(charge.told_unreachable);
  }
  connections_.at(hand.link).link->Send(down);
}

void Branch::Do(const FanOut::Close& close) {
  connections_.erase(close.link);
}

void Branch::Do(const HostNews& news) {
  callbacks_.on_news(news);
}

void Branch::OnMessage(FanOut::LinkId id, const launch::v1::Up& message) {
  const auto now = FanOut::Time::clock::now();
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  connection.last_heard = now;
  if (message.has_refusal()) {
    return EndLink(id, rendezvous::OneLine(message.refusal().reason(), 300));
  }
  if (message.has_answer()) return OnAnswer(id, message.answer());
  if (!connection.has_answered) return;
  if (message.has_news()) return Do(fan_out_.OnNews(id, ToNews(message.news()), now));
  if (message.has_output()) callbacks_.on_output(message.output());
}

void Branch::OnAnswer(FanOut::LinkId id, const launch::v1::Answer& answer) {
  Connection& connection = connections_.at(id);
  if (answer.build() != OwnBuild() || answer.version() != base::kVersion) {
    if (!job_.ships() || connection.source == ProgramSource::kShipped) {
      return EndLink(id, absl::StrCat("its muster is a different build (version ",
                                      rendezvous::OneLine(answer.version(), 40), ", here ",
                                      base::kVersion, "); install the same on both"));
    }
    // Connect again and send this program. Posted, because the link that reports this is on the
    // stack.
    return boost::asio::post(io_, lifetime_.Guard([this, id] {
      const auto found = connections_.find(id);
      if (found == connections_.end() || found->second.source == ProgramSource::kShipped) return;
      Connect(id, ProgramSource::kShipped);
    }));
  }
  if (std::exchange(connection.has_answered, true)) return;
  if (resized_) {
    launch::v1::Down resize;
    *resize.mutable_resize() = *resized_;
    connection.link->Send(resize);
  }
  if (endpoint_) {
    launch::v1::Down begin;
    begin.mutable_begin()->set_endpoint(*endpoint_);
    connection.link->Send(begin);
  }
  Do(fan_out_.OnAnswer(id, rendezvous::OneLine(answer.endpoint(), 300),
                       FanOut::Time::clock::now()));
}

void Branch::EndLink(FanOut::LinkId id, const std::string& reason) {
  boost::asio::post(io_, lifetime_.Guard([this, id, reason] {
    const auto found = connections_.find(id);
    if (found != connections_.end()) {
      if (!found->second.is_greeted) without_muster_.insert(found->second.host);
      connections_.erase(found);
    }
    Do(fan_out_.OnLinkEnd(id, reason, FanOut::Time::clock::now()));
    CheckGone();
  }));
}

void Branch::ToAnswered(const launch::v1::Down& message) {
  for (auto& [id, connection] : connections_) {
    if (connection.has_answered) connection.link->Send(message);
  }
}

void Branch::Stop() {
  stopped_ = true;
  Do(fan_out_.Stop());
}

void Branch::Arm() {
  const auto deadline = fan_out_.next_deadline();
  if (!deadline) {
    timer_.cancel();
    return;
  }
  timer_.expires_at(*deadline);
  timer_.async_wait(lifetime_.Guard([this](boost::system::error_code error) {
    if (!error) Do(fan_out_.OnTime(FanOut::Time::clock::now()));
  }));
}

void Branch::Beat() {
  beat_.expires_after(kBeat);
  beat_.async_wait(lifetime_.Guard([this](boost::system::error_code error) {
    if (error) return;
    EndSilentLinks(beat_.expiry());
    launch::v1::Down ping;
    ping.mutable_ping();
    for (auto& [id, connection] : connections_) {
      if (connection.has_answered && connection.link->pending_size() < kMaxPendingForBeat)
        connection.link->Send(ping);
    }
    Beat();
  }));
}

void Branch::EndSilentLinks(std::chrono::steady_clock::time_point due) {
  const auto now = std::chrono::steady_clock::now();
  // Silence means nothing if this process stood still, or does not read because its output is full.
  const bool was_deaf = now - due > std::chrono::seconds(1) || !callbacks_.has_room();
  for (auto& [id, connection] : connections_) {
    if (!connection.has_answered) continue;
    if (was_deaf) connection.last_heard = now;
    if (now - connection.last_heard < kSilence) continue;
    EndLink(id, absl::StrCat("nothing was heard from it for ", kSilence.count(), " s"));
  }
}

void Branch::CheckGone() {
  if (!on_gone_ || !connections_.empty()) return;
  limit_.cancel();
  beat_.cancel();
  timer_.cancel();
  boost::asio::post(io_, std::exchange(on_gone_, nullptr));
}

}  // namespace muster::launcher
