#include "launcher/remote/node_process.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>

#include <boost/asio/post.hpp>

#include "absl/strings/str_cat.h"

#include "base/failure.h"
#include "worker/output/pseudo_terminal.h"
#include "worker/process/spawn.h"

namespace muster::launcher {
namespace {

using launch::v1::Output;

constexpr std::size_t kNodePiece = 64 * 1024;

// Our end is nonblocking, the child's blocks.
absl::Status MakeOutputPipe(base::UniqueFd& ours, base::UniqueFd& childs) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return base::SystemFailure(absl::StatusCode::kResourceExhausted, "make a pipe");
  }
  ours.reset(ends[0]);
  childs.reset(ends[1]);
  ::fcntl(ours.get(), F_SETFL, O_NONBLOCK);
  return absl::OkStatus();
}

worker::WindowSize ToWindowSize(const launch::v1::WindowSize& size) {
  return {.rows = size.rows(), .columns = size.columns()};
}

// The same with a pseudo-terminal; false if the system has none left.
bool MakeOutputTerminal(const launch::v1::WindowSize& size, base::UniqueFd& ours,
                        base::UniqueFd& childs) {
  auto terminal = worker::OpenPseudoTerminal(ToWindowSize(size));
  if (!terminal) return false;
  ours = std::move(terminal->our_end);
  childs = std::move(terminal->worker_end);
  ::fcntl(ours.get(), F_SETFL, O_NONBLOCK);
  return true;
}

// null: the stream does not lead to a terminal.
const launch::v1::WindowSize* SizeFor(Output::Stream stream,
                                      const launch::v1::Terminals& terminals) {
  if (stream == Output::STDOUT && terminals.has_out()) return &terminals.out();
  if (stream == Output::STDERR && terminals.has_err()) return &terminals.err();
  return nullptr;
}

// The read end of a pipe that holds `token`, which always fits into it, followed by end of file.
absl::StatusOr<base::UniqueFd> TokenPipe(const std::string& token) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return base::SystemFailure(absl::StatusCode::kResourceExhausted, "make a pipe");
  }
  base::UniqueFd read_end(ends[0]);
  const base::UniqueFd write_end(ends[1]);
  if (::write(write_end.get(), token.data(), token.size()) != static_cast<ssize_t>(token.size())) {
    return base::SystemFailure(absl::StatusCode::kInternal, "pass on the token");
  }
  return read_end;
}

}  // namespace

NodeProcess::NodeProcess(boost::asio::io_context& io, Callbacks callbacks)
    : callbacks_(std::move(callbacks)),
      stdout_(io, Output::STDOUT, [this] { return PassOnPart(stdout_); }),
      stderr_(io, Output::STDERR, [this] { return PassOnPart(stderr_); }),
      speech_(io, Output::LOG, [this] { return PassOnPart(speech_); }) {}

absl::StatusOr<std::unique_ptr<NodeProcess>> NodeProcess::Start(
    boost::asio::io_context& io, std::vector<std::string> argv,
    std::vector<std::string> environment, const std::string& token,
    const launch::v1::Terminals& terminals, bool reads_input, Callbacks callbacks) {
  std::unique_ptr<NodeProcess> node(new NodeProcess(io, std::move(callbacks)));
  auto token_pipe = TokenPipe(token);
  if (!token_pipe.ok()) return token_pipe.status();
  base::UniqueFd input(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (reads_input) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
      return base::SystemFailure(absl::StatusCode::kResourceExhausted, "make a pipe");
    }
    input.reset(ends[0]);
    node->input_end_.reset(ends[1]);
    node->input_ = std::make_unique<worker::ConsoleSink>(io, ends[1], "the node's input",
                                                         [](const std::string&) {});
  }
  Source* const sources[] = {&node->stdout_, &node->stderr_, &node->speech_};
  base::UniqueFd childs[3];
  for (std::size_t i = 0; i < 3; ++i) {
    base::UniqueFd ours;
    if (const launch::v1::WindowSize* const size = SizeFor(sources[i]->stream, terminals)) {
      sources[i]->is_terminal = MakeOutputTerminal(*size, ours, childs[i]);
    }
    if (!sources[i]->is_terminal) {
      const absl::Status status = MakeOutputPipe(ours, childs[i]);
      if (!status.ok()) return status;
    }
    sources[i]->end.assign(ours.release());
  }
  worker::SpawnRequest request;
  request.argv = std::move(argv);
  request.env = std::move(environment);
  request.stdin_fd = input.get();
  request.stdout_fd = childs[0].get();
  request.stderr_fd = childs[1].get();
  request.more_fds = {token_pipe->get(), childs[2].get()};
  auto spawned = worker::Spawn(request);
  if (!spawned.ok()) return spawned.status();
  for (Source* const source : sources) node->Await(*source);
  node->process_ = std::make_unique<worker::Process>(
      io, *std::move(spawned), [node = node.get()](const worker::ExitStatus& status) {
        node->has_exited_ = true;
        node->exit_ = status;
        // Read the rest of the pipes now: processes that a worker left running may keep the other
        // ends open.
        const base::Lifetime::Watch watch = node->lifetime_.watch();
        for (Source* const source : {&node->stdout_, &node->stderr_, &node->speech_}) {
          if (!watch.over() && source->is_open && !source->is_paused) node->Read(*source);
        }
        if (!watch.over()) node->MaybeEnd();
      });
  return node;
}

void NodeProcess::Signal(int number) {
  if (process_->running()) ::kill(process_->pid(), number);
}

void NodeProcess::Resize(const launch::v1::Terminals& terminals) {
  for (Source* const source : {&stdout_, &stderr_}) {
    const launch::v1::WindowSize* const size = SizeFor(source->stream, terminals);
    if (size == nullptr || !source->is_terminal || !source->is_open) continue;
    worker::SetWindowSize(source->end.native_handle(), ToWindowSize(*size));
  }
  // The terminal is not the agent's controlling one, so the kernel does not send SIGWINCH.
  Signal(SIGWINCH);
}

void NodeProcess::Resume() {
  for (Source* const source : {&stdout_, &stderr_, &speech_}) {
    if (!std::exchange(source->is_paused, false)) continue;
    boost::asio::post(source->end.get_executor(), lifetime_.Guard([this, source] {
      if (source->is_open) Read(*source);
    }));
  }
}

void NodeProcess::Tell(std::string_view lines) {
  if (input_ != nullptr && input_->HasRoom()) input_->Write(lines);
}

void NodeProcess::Await(Source& source) {
  source.end.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                        lifetime_.Guard([this, &source](boost::system::error_code error) {
                          if (!error && source.is_open) Read(source);
                        }));
}

void NodeProcess::Read(Source& source) {
  if (!callbacks_.has_room()) {
    source.is_paused = true;
    return;
  }
  std::array<char, kNodePiece> piece;
  const ssize_t size = ::read(source.end.native_handle(), piece.data(), piece.size());
  const bool is_empty = size < 0 && (errno == EAGAIN || errno == EINTR);
  if (size > 0) Hear(source, {piece.data(), static_cast<std::size_t>(size)});
  if (size > 0 || (is_empty && !has_exited_)) {
    if (!has_exited_) return Await(source);
    return boost::asio::post(source.end.get_executor(), lifetime_.Guard([this, &source] {
      if (source.is_open) Read(source);
    }));
  }
  source.is_open = false;
  source.end.close();
  if (const std::string rest = source.lines.TakeRest(); !rest.empty()) {
    callbacks_.on_output(source.stream, rest);
  }
  MaybeEnd();
}

void NodeProcess::Hear(Source& source, std::string_view bytes) {
  const bool is_speech = source.stream == Output::LOG;
  const std::size_t mark =
      !is_speech || reports_ ? std::string_view::npos : bytes.find(kReportMark);
  if (!reports_ || !is_speech) {
    const std::string lines = source.lines.Add(bytes.substr(0, mark));
    if (!lines.empty()) callbacks_.on_output(source.stream, lines);
    source.part.OnBytes(!lines.empty(), !source.lines.rest().empty());
    if (mark == std::string_view::npos) return;
    reports_ = true;
    bytes.remove_prefix(mark + 1);
  }
  if (!bytes.empty()) callbacks_.on_output(Output::REPORT, bytes);
}

bool NodeProcess::PassOnPart(Source& source) {
  if (!source.is_open) return true;
  pollfd more = {source.end.native_handle(), POLLIN, 0};
  if (source.is_paused || ::poll(&more, 1, 0) > 0) return false;
  if (const std::string rest = source.lines.TakeRest(); !rest.empty()) {
    callbacks_.on_output(source.stream, rest);
  }
  return true;
}

void NodeProcess::MaybeEnd() {
  if (!has_exited_ || stdout_.is_open || stderr_.is_open || speech_.is_open) return;
  lifetime_.End();
  callbacks_.on_end(exit_);
}

bool IsDoctor(const launch::v1::Job& job) {
  return job.dialect() == "doctor";
}

std::vector<std::string> NodeCommand(const std::string& program, const launch::v1::Job& job,
                                     const launch::v1::Host& self, const std::string& endpoint) {
  if (job.question_size() > 0) {
    std::vector<std::string> argv = {program};
    argv.insert(argv.end(), job.question().begin(), job.question().end());
    return argv;
  }
  if (IsDoctor(job)) {
    std::vector<std::string> argv = {program, job.dialect(),
                                     absl::StrCat("--node=", self.index(), "@", endpoint)};
    argv.insert(argv.end(), job.flags().begin(), job.flags().end());
    if (!job.token().empty()) argv.push_back(absl::StrCat("--token-fd=", NodeProcess::kTokenFd));
    argv.push_back("--");
    argv.insert(argv.end(), job.command().begin(), job.command().end());
    return argv;
  }
  // The last of equal flags wins: the user's override those before them, and those after override
  // the user's.
  std::vector<std::string> argv = {program, job.dialect(), "--prefix-lines"};
  argv.insert(argv.end(), job.flags().begin(), job.flags().end());
  if (self.workers() > 0) argv.push_back(absl::StrCat("--nproc-per-node=", self.workers()));
  argv.push_back(absl::StrCat("--nnodes=", job.min_nodes(), ":", job.max_nodes()));
  argv.push_back(absl::StrCat("--rdzv-id=", job.run_id()));
  if (job.uses_rendezvous()) {
    argv.push_back(absl::StrCat("--rdzv-endpoint=", endpoint));
    argv.push_back(absl::StrCat("--node-rank=", self.index()));
  }
  if (!job.token().empty()) argv.push_back(absl::StrCat("--token-fd=", NodeProcess::kTokenFd));
  argv.push_back("--");
  argv.insert(argv.end(), job.command().begin(), job.command().end());
  return argv;
}

std::vector<std::string> NodeEnvironment(const launch::v1::Job& job, Environment own) {
  for (const std::string& variable : job.environment()) {
    const std::size_t equals = variable.find('=');
    if (equals == std::string::npos) continue;
    own[variable.substr(0, equals)] = variable.substr(equals + 1);
  }
  // Lines of all ranks are merged, so each needs its rank.
  own.emplace("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "[${role_name}${rank}]:");
  own[kSpeechVariable] = absl::StrCat(NodeProcess::kSpeechFd);
  return ToBlock(own);
}

}  // namespace muster::launcher
