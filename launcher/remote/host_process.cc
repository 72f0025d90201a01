#include "launcher/remote/host_process.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>
#include <vector>

#include <boost/asio/post.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "base/text.h"
#include "base/version.h"
#include "launcher/machine/environment.h"
#include "rendezvous/net/endpoint.h"

namespace muster::launcher {
namespace {

using launch::v1::Output;

constexpr std::size_t kInputPiece = 64 * 1024;
// How long hosts below have to stop once this process's parent is gone: longer than their nodes
// need.
constexpr std::chrono::minutes kLinkLimit(10);
// Restarts of a killed node, and the pause before each; FanOut treats lost hosts the same.
constexpr int kNodeAttempts = 3;
constexpr std::chrono::seconds kNodePause(2);
// A shell's exit code for a signal.
constexpr int kKilledBase = 128;
// The error for a link that does not pass on standard input.
constexpr char kNoInput[] =
    "its input ended before anything was received; the remote shell command must pass on standard "
    "input, as `docker exec -i` does";

}  // namespace

HostProcess::HostProcess(boost::asio::io_context& io, std::function<void()> on_done)
    : io_(io),
      on_done_(std::move(on_done)),
      program_(OwnProgram()),
      input_(io, ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)),
      output_(io, STDOUT_FILENO, "stdout", [](const std::string&) {}),
      silence_(io),
      beat_(io),
      last_heard_(std::chrono::steady_clock::now()),
      node_pause_(io) {
  std::signal(SIGPIPE, SIG_IGN);
  output_.Write({kGreeting.data(), kGreeting.size()});
  AwaitInput();
  AwaitSilence();
}

void HostProcess::AwaitInput() {
  input_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                    lifetime_.Guard([this](boost::system::error_code error) {
                      // /dev/null and the like cannot be polled, but are always readable.
                      const bool readable =
                          !error || error == boost::asio::error::operation_not_supported;
                      if (readable && !parent_gone_) ReadInput();
                    }));
}

void HostProcess::ReadInput() {
  std::array<char, kInputPiece> piece;
  // The descriptor is readable or at its end, so this does not block.
  const ssize_t size = ::read(STDIN_FILENO, piece.data(), piece.size());
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) return AwaitInput();
  if (size <= 0 && !setup_) return Refuse(kNoInput);
  if (size <= 0) return OnParentGone();
  last_heard_ = std::chrono::steady_clock::now();
  reader_.Add({piece.data(), static_cast<std::size_t>(size)});
  while (!parent_gone_) {
    const auto message = reader_.Next();
    if (!message.ok()) return Refuse(std::string(message.status().message()));
    if (!message->has_value()) return AwaitInput();
    OnFrame(**message);
  }
}

void HostProcess::OnFrame(const std::string& message) {
  launch::v1::Down down;
  if (!down.ParseFromString(message) || (!setup_ && !down.has_setup())) {
    return Refuse("received an invalid message from the parent");
  }
  if (down.has_setup() && !setup_) SetUp(down.setup());
  if (down.has_adopt() && branch_ != nullptr) {
    branch_->Adopt({down.adopt().hosts().begin(), down.adopt().hosts().end()});
  }
  if (down.has_begin() && branch_ != nullptr) {
    branch_->Begin(down.begin().endpoint());
    BeginNode(down.begin().endpoint());
  }
  if (down.has_resize() && branch_ != nullptr) OnResize(down.resize());
  if (down.has_input() && branch_ != nullptr) {
    branch_->Tell(down.input().data());
    if (node_ != nullptr) node_->Tell(down.input().data());
  }
  if (down.has_signal() && branch_ != nullptr) OnSignal(down.signal());
}

void HostProcess::OnResize(const launch::v1::Terminals& terminals) {
  *setup_->mutable_job()->mutable_terminals() = terminals;
  branch_->Resize(terminals);
  if (node_ != nullptr) node_->Resize(terminals);
}

void HostProcess::OnSignal(const launch::v1::Signal& signal) {
  // Hosts further away first: the first node to leave makes the rendezvous stop all others with
  // SIGTERM.
  branch_->Signal(signal.number(), signal.ends_job());
  job_ends_ = job_ends_ || signal.ends_job();
  if (node_ != nullptr) return node_->Signal(signal.number());
  if (!signal.ends_job() || std::exchange(node_is_decided_, true)) return;
  OnNodeEnd(kKilledBase + signal.number());
}

void HostProcess::SetUp(const launch::v1::Setup& setup) {
  setup_ = setup;
  auto place = HostPlace::Take(RunsDirs(RunsPlaceOf(ReadEnvironment(environ))), setup_->job().id(),
                               setup_->self().index());
  if (!place.ok()) return Refuse(std::string(place.status().message()));
  place_ = *std::move(place);
  const std::string& directory = setup_->job().directory();
  // The working directory of a laptop often does not exist here; then stay in the home directory,
  // where a login starts.
  if (!directory.empty()) [[maybe_unused]]
    const int ignored = ::chdir(directory.c_str());
  branch_ = std::make_unique<Branch>(io_, setup_->job(), program_,
                                     Branch::Callbacks{.on_news =
                                                           [this](const HostNews& news) {
                                                             launch::v1::Up up;
                                                             *up.mutable_news() = ToMessage(news);
                                                             Send(up);
                                                           },
                                                       .on_output =
                                                           [this](const Output& output) {
                                                             launch::v1::Up up;
                                                             *up.mutable_output() = output;
                                                             Send(up);
                                                           },
                                                       .has_room = [this] { return HasRoom(); }});
  launch::v1::Up up;
  up.mutable_answer()->set_version(base::kVersion);
  up.mutable_answer()->set_build(OwnBuild());
  own_endpoint_ = OwnEndpoint();
  up.mutable_answer()->set_endpoint(own_endpoint_);
  Send(up);
  Beat();
}

std::string HostProcess::OwnEndpoint() {
  if (!setup_->job().uses_rendezvous()) return "";
  auto port = ReservedPort::Hold(0);
  if (!port.ok()) return "";
  port_.emplace(*std::move(port));
  // The local address of the ssh connection is one by which this host can be reached; its name in
  // the list may be known to the user's ssh only. "CLIENT PORT SERVER PORT".
  const char* const connection = std::getenv("SSH_CONNECTION");
  const std::vector<std::string> words =
      absl::StrSplit(connection == nullptr ? "" : connection, ' ');
  std::string address = words.size() == 4 ? words[2] : setup_->self().name();
  if (rendezvous::IsLoopbackLiteral(address) && setup_->job().max_nodes() > 1) {
    const std::vector<std::string> interfaces = InterfaceAddresses();
    if (!interfaces.empty()) address = interfaces.front();
  }
  return rendezvous::ToString({address, port_->port()});
}

void HostProcess::BeginNode(const std::string& endpoint) {
  if (parent_gone_ || std::exchange(node_is_decided_, true)) return;
  const HostIndex self = setup_->self().index();
  auto node = NodeProcess::Start(
      io_,
      // Other doctor nodes connect here, so a doctor's node gets its own endpoint.
      NodeCommand(program_, setup_->job(), setup_->self(),
                  IsDoctor(setup_->job()) ? own_endpoint_ : endpoint),
      NodeEnvironment(setup_->job(), ReadEnvironment(environ)), setup_->job().token(),
      setup_->job().terminals(), IsDoctor(setup_->job()),
      {.on_output = [this, self](Output::Stream stream,
                                 std::string_view bytes) { SendOutput(self, stream, bytes); },
       .on_end =
           [this, endpoint](const worker::ExitStatus& status) {
             if (status.signal != 0 && StartsAgain(endpoint, status.signal)) return;
             OnNodeEnd(status.signal != 0 ? kKilledBase + status.signal : status.exit_code);
           },
       .has_room = [this] { return HasRoom(); }});
  if (!node.ok()) {
    SendOutput(self, Output::LOG, absl::StrCat(std::string(node.status().message()), "\n"));
    return OnNodeEnd(4);
  }
  node_ = *std::move(node);
}

bool HostProcess::StartsAgain(const std::string& endpoint, int signal) {
  const bool can_join =
      setup_->job().uses_rendezvous() && endpoint != own_endpoint_ && !IsDoctor(setup_->job());
  if (!can_join || job_ends_ || parent_gone_ || ++node_failures_ > kNodeAttempts) return false;
  SendOutput(
      setup_->self().index(), Output::LOG,
      absl::StrCat("the node was killed by ", base::SignalName(signal), " and is started again\n"));
  node_is_decided_ = false;
  // Posted, because the node that reports its exit is on the stack.
  boost::asio::post(io_, lifetime_.Guard([this] {
    node_.reset();
    MaybeDone();
  }));
  node_pause_.expires_after(kNodePause);
  node_pause_.async_wait(lifetime_.Guard([this, endpoint](boost::system::error_code error) {
    if (!error) BeginNode(endpoint);
  }));
  return true;
}

void HostProcess::OnNodeEnd(int exit_code) {
  launch::v1::Up up;
  *up.mutable_news() = ToMessage(HostNews{
      .host = setup_->self().index(), .what = HostNews::What::kEnded, .exit_code = exit_code});
  Send(up);
  // Posted, because the node that reports its exit is on the stack.
  boost::asio::post(io_, lifetime_.Guard([this] {
    node_.reset();
    MaybeDone();
  }));
}

void HostProcess::OnParentGone() {
  if (std::exchange(parent_gone_, true)) return;
  silence_.cancel();
  beat_.cancel();
  input_.cancel();
  if (node_ != nullptr) {
    node_->Signal(SIGTERM);
    node_->Resume();
  }
  if (branch_ == nullptr) {
    branch_gone_ = true;
    return MaybeDone();
  }
  branch_->Resume();
  branch_->Close(kLinkLimit, lifetime_.Guard([this] {
    branch_gone_ = true;
    MaybeDone();
  }));
}

void HostProcess::AwaitSilence() {
  silence_.expires_at(last_heard_ + kSilence);
  silence_.async_wait(lifetime_.Guard([this](boost::system::error_code error) {
    if (error || parent_gone_) return;
    // If this process stood still, the parent's messages may still be unread.
    pollfd waiting = {STDIN_FILENO, POLLIN, 0};
    if (::poll(&waiting, 1, 0) > 0) last_heard_ = std::chrono::steady_clock::now();
    if (std::chrono::steady_clock::now() - last_heard_ >= kSilence) return OnParentGone();
    AwaitSilence();
  }));
}

void HostProcess::Beat() {
  beat_.expires_after(kBeat);
  beat_.async_wait(lifetime_.Guard([this](boost::system::error_code error) {
    if (error || parent_gone_) return;
    launch::v1::Up ping;
    ping.mutable_ping();
    // A parent that does not read does not need keep-alives either.
    if (output_.HasRoom()) Send(ping);
    Beat();
  }));
}

void HostProcess::Refuse(const std::string& reason) {
  launch::v1::Up up;
  up.mutable_refusal()->set_reason(reason);
  Send(up);
  exit_code_ = 1;
  OnParentGone();
}

void HostProcess::Send(const launch::v1::Up& message) {
  if (!parent_gone_) output_.Write(ToFrame(message.SerializeAsString()));
}

void HostProcess::SendOutput(HostIndex host, Output::Stream stream, std::string_view bytes) {
  launch::v1::Up up;
  up.mutable_output()->set_host(host);
  up.mutable_output()->set_stream(stream);
  up.mutable_output()->set_data(bytes.data(), bytes.size());
  Send(up);
}

bool HostProcess::HasRoom() {
  // Output is discarded once the parent is gone.
  if (parent_gone_ || output_.HasRoom()) return true;
  if (!std::exchange(awaits_room_, true)) {
    output_.WhenRoom(lifetime_.Guard([this] {
      awaits_room_ = false;
      if (node_ != nullptr) node_->Resume();
      if (branch_ != nullptr) branch_->Resume();
    }));
  }
  return false;
}

void HostProcess::MaybeDone() {
  if (!parent_gone_ || !branch_gone_ || node_ != nullptr) return;
  // Send what is still buffered first, such as a refusal.
  output_.WhenWritten(lifetime_.Guard([this] { on_done_(); }));
}

int HostCommand() {
  boost::asio::io_context io(1);
  HostProcess host(io, [&io] { io.stop(); });
  io.run();
  return host.exit_code();
}

}  // namespace muster::launcher
