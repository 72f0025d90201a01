#include "launcher/remote/link.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <string_view>
#include <utility>

#include <boost/asio/post.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/failure.h"
#include "base/text.h"
#include "launcher/remote/link_command.h"
#include "rendezvous/core/values/phrases.h"
#include "worker/process/spawn.h"

namespace muster::launcher {
namespace {

constexpr std::size_t kLinkPiece = 64 * 1024;
constexpr std::size_t kMaxLastLine = 1000;
constexpr std::size_t kMaxMachine = 40;
// ssh's own exit code, not the remote command's. ssh prints no reason if another ssh's shared
// connection broke (ssh_config(5): ControlMaster).
constexpr int kSshFailed = 255;
constexpr std::size_t kProgramPiece = 256 * 1024;

struct Pipe {
  base::UniqueFd read_end;
  base::UniqueFd write_end;
};

absl::StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return base::SystemFailure(absl::StatusCode::kResourceExhausted, "make a pipe");
  }
  return Pipe{base::UniqueFd(ends[0]), base::UniqueFd(ends[1])};
}

void SetNonBlocking(int fd) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

// The last nonempty line of `text`, as one line; ssh ends some lines with \r\n.
std::string LastLine(const std::string& text) {
  std::string last;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    // After these ssh continues with a connection of its own.
    if (absl::StartsWith(line, "ControlSocket ") || absl::StartsWith(line, "mux_client_")) continue;
    // Requests for the program are not error messages.
    if (absl::StartsWith(line, absl::StripAsciiWhitespace(kWhichQuestion)) ||
        line == absl::StripAsciiWhitespace(kSendQuestion)) {
      continue;
    }
    if (!line.empty()) last = std::string(line);
  }
  return rendezvous::OneLine(last, kMaxLastLine);
}

}  // namespace

Link::Link(boost::asio::io_context& io, std::string name, Callbacks callbacks)
    : name_(std::move(name)), callbacks_(std::move(callbacks)), output_(io), errors_(io) {}

Link::~Link() {
  // Remaining processes of the group after the child itself has exited.
  if (has_exited_) process_->SignalGroup(SIGKILL);
}

absl::StatusOr<std::unique_ptr<Link>> Link::Start(boost::asio::io_context& io, std::string name,
                                                  std::vector<std::string> argv,
                                                  std::vector<std::string> env,
                                                  Callbacks callbacks) {
  if (argv.empty()) return absl::InvalidArgumentError("the command that starts a host is empty");
  std::unique_ptr<Link> link(new Link(io, std::move(name), std::move(callbacks)));
  const absl::Status status = link->Spawn(io, std::move(argv), std::move(env));
  if (!status.ok()) return status;
  return link;
}

absl::Status Link::Spawn(boost::asio::io_context& io, std::vector<std::string> argv,
                         std::vector<std::string> env) {
  auto in = MakePipe();
  if (!in.ok()) return in.status();
  auto out = MakePipe();
  if (!out.ok()) return out.status();
  auto err = MakePipe();
  if (!err.ok()) return err.status();
  worker::SpawnRequest request;
  request.argv = std::move(argv);
  request.env = std::move(env);
  request.stdin_fd = in->read_end.get();
  request.stdout_fd = out->write_end.get();
  request.stderr_fd = err->write_end.get();
  auto spawned = worker::Spawn(request);
  if (!spawned.ok()) return spawned.status();

  input_fd_ = std::move(in->write_end);
  // A broken pipe shows as the child's exit.
  input_ =
      std::make_unique<worker::ConsoleSink>(io, input_fd_.get(), "link", [](const std::string&) {});
  SetNonBlocking(out->read_end.get());
  SetNonBlocking(err->read_end.get());
  output_.end.assign(out->read_end.release());
  errors_.end.assign(err->read_end.release());
  Await(output_);
  Await(errors_);
  process_ = std::make_unique<worker::Process>(
      io, *std::move(spawned),
      [this](const worker::ExitStatus& status) {
        has_exited_ = true;
        exit_ = status;
        // Read the rest of the pipes now. Others may keep their ends open, such as ssh's shared
        // connections.
        const base::Lifetime::Watch watch = lifetime_.watch();
        if (errors_.is_open) Read(errors_);
        if (!watch.over() && output_.is_open && !paused_) Read(output_);
        if (!watch.over()) MaybeEnd();
      },
      worker::Process::Number::kKept);
  return absl::OkStatus();
}

void Link::Send(const launch::v1::Down& message) {
  if (input_) input_->Write(ToFrame(message.SerializeAsString()));
}

void Link::Answer(const std::string& line) {
  if (input_) input_->Write(line + "\n");
}

void Link::SendProgram(std::shared_ptr<const std::string> compressed) {
  program_ = std::move(compressed);
  Answer(absl::StrCat(program_->size()));
  SendPiece(0);
}

void Link::SendPiece(std::size_t begin) {
  if (!input_ || begin >= program_->size()) return;
  input_->Write(std::string_view(*program_).substr(begin, kProgramPiece));
  input_->WhenWritten([this, begin] {
    boost::asio::post(output_.end.get_executor(),
                      lifetime_.Guard([this, begin] { SendPiece(begin + kProgramPiece); }));
  });
}

void Link::HearQuestions() {
  const std::string heard = reader_.heard();
  if (const std::size_t at = heard.find(kWhichQuestion);
      at != std::string::npos && !was_asked_which_) {
    const std::size_t begin = at + sizeof kWhichQuestion - 1;
    const std::size_t end = heard.find("?\n", begin);
    if (end == std::string::npos) return;
    was_asked_which_ = true;
    callbacks_.on_which(rendezvous::OneLine(heard.substr(begin, end - begin), kMaxMachine));
  }
  if (!was_asked_to_send_ && was_asked_which_ && heard.find(kSendQuestion) != std::string::npos) {
    was_asked_to_send_ = true;
    callbacks_.on_send();
  }
}

void Link::CloseInput() {
  if (!input_) return;
  // Data sent before still arrives.
  input_->WhenWritten([this] {
    boost::asio::post(output_.end.get_executor(), lifetime_.Guard([this] {
      input_.reset();
      input_fd_.reset();
    }));
  });
}

void Link::Resume() {
  if (!std::exchange(paused_, false)) return;
  boost::asio::post(output_.end.get_executor(), lifetime_.Guard([this] {
    if (output_.is_open) Read(output_);
  }));
}

void Link::Await(Source& source) {
  source.end.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                        lifetime_.Guard([this, &source](boost::system::error_code error) {
                          if (!error && source.is_open) Read(source);
                        }));
}

void Link::Read(Source& source) {
  const bool is_output = &source == &output_;
  if (is_output && !callbacks_.has_room()) {
    paused_ = true;
    return;
  }
  std::array<char, kLinkPiece> piece;
  const ssize_t size = ::read(source.end.native_handle(), piece.data(), piece.size());
  const bool is_empty = size < 0 && (errno == EAGAIN || errno == EINTR);
  if (size > 0) {
    const std::string_view bytes(piece.data(), static_cast<std::size_t>(size));
    if (!is_output) {
      error_tail_.Append(bytes);
    } else {
      reader_.Add({bytes.data(), bytes.size()});
      const base::Lifetime::Watch watch = lifetime_.watch();
      const absl::Status status = Dispatch();
      if (watch.over()) return;
      if (!status.ok()) {
        lifetime_.End();
        return callbacks_.on_end(std::string(status.message()));
      }
    }
  }
  if (size > 0 || (is_empty && !has_exited_)) {
    // After the child's exit, read until the pipe is empty instead of waiting for more.
    if (!has_exited_) return Await(source);
    return boost::asio::post(source.end.get_executor(), lifetime_.Guard([this, &source] {
      if (source.is_open) Read(source);
    }));
  }
  source.is_open = false;
  source.end.close();
  MaybeEnd();
}

absl::Status Link::Dispatch() {
  while (true) {
    auto message = reader_.Next();
    if (!message.ok()) return message.status();
    if (reader_.greeted() && !std::exchange(is_greeted_, true)) callbacks_.on_greeting();
    if (!reader_.greeted()) HearQuestions();
    if (!message->has_value()) return absl::OkStatus();
    launch::v1::Up up;
    if (!up.ParseFromString(**message)) {
      return absl::InvalidArgumentError("it did not answer like a Muster");
    }
    callbacks_.on_message(up);
  }
}

void Link::MaybeEnd() {
  if (!has_exited_ || output_.is_open || errors_.is_open) return;
  lifetime_.End();
  callbacks_.on_end(Reason());
}

std::string Link::Reason() const {
  std::string said = LastLine(error_tail_.Text());
  if (said.empty()) said = LastLine(reader_.greeted() ? reader_.noise() : reader_.heard());
  if (!said.empty()) return said;
  if (name_ == "ssh" && exit_.signal == 0 && exit_.exit_code == kSshFailed) {
    return absl::StrCat("the connection broke (`ssh` ended with exit code ", kSshFailed, ")");
  }
  return exit_.signal != 0
             ? absl::StrCat("`", name_, "` was killed by ", base::SignalName(exit_.signal))
             : absl::StrCat("`", name_, "` ended with exit code ", exit_.exit_code);
}

}  // namespace muster::launcher
