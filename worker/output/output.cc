#include "worker/output/output.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <utility>

#include "base/failure.h"
#include "worker/output/pseudo_terminal.h"
#include "worker/output/stream_log.h"
#include "worker/process/descriptors.h"

namespace muster::worker {
namespace {

// A pipe's usual capacity: one read empties it.
constexpr std::size_t kChunk = 64 * 1024;
// More than a terminal's kernel buffer, whose size cannot be queried.
constexpr std::size_t kTerminalBuffer = 2 * kChunk;

// The debugger or Python prompt at the end of `text`; empty if there is none.
std::string_view DebuggerPrompt(std::string_view text) {
  for (const std::string_view prompt :
       {"(Pdb) ", "(Pdb++) ", "ipdb> ", "(gdb) ", "(lldb) ", ">>> "}) {
    if (text.ends_with(prompt)) return prompt.substr(0, prompt.size() - 1);
  }
  return {};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Output>> Output::Open(boost::asio::io_context& io,
                                                     const OutputSpec& spec, StreamKind kind,
                                                     Console& console, WarningCallback on_log_loss,
                                                     WarningCallback on_prompt) {
  std::unique_ptr<Output> output(
      new Output(io, spec, kind, console, std::move(on_log_loss), std::move(on_prompt)));
  absl::Status status = output->OpenFiles();
  if (status.ok()) status = output->OpenEnds(io);
  if (!status.ok()) return status;
  return output;
}

Output::Output(boost::asio::io_context& io, const OutputSpec& spec, StreamKind kind,
               Console& console, WarningCallback on_log_loss, WarningCallback on_prompt)
    : spec_(spec),
      kind_(kind),
      on_log_loss_(std::move(on_log_loss)),
      on_prompt_(spec.to_console ? nullptr : std::move(on_prompt)),
      console_(console),
      partial_line_(io, [this] { return OnPartialLine(); }) {}

Output::~Output() {
  if (spec_.log != nullptr) spec_.log->End();
  if (is_terminal_ && our_end_.has_value()) {
    console_.RemoveTerminal(kind_, our_end_->native_handle());
  }
}

absl::Status Output::OpenFiles() {
  const std::pair<const std::string&, std::optional<LogWriter>&> files[] = {
      {spec_.file, file_}, {spec_.filtered_file, filtered_file_}};
  for (const auto& [path, writer] : files) {
    if (path.empty()) continue;
    absl::StatusOr<LogWriter> file = LogWriter::Open(path);
    if (!file.ok()) return file.status();
    writer.emplace(*std::move(file));
  }
  return absl::OkStatus();
}

absl::Status Output::OpenEnds(boost::asio::io_context& io) {
  const bool has_prefix = spec_.to_console && !spec_.prefix.empty();
  if (!file_.has_value() && !filtered_file_.has_value()) {
    // A debugger reads from the worker's stdin, which is a terminal here.
    const bool may_debug =
        on_prompt_ != nullptr && kind_ == StreamKind::kStdout && ::isatty(STDIN_FILENO) == 1;
    if (!has_prefix && !spec_.keep_tail && !may_debug) {
      if (spec_.log != nullptr) {
        spec_.log->Bypass(spec_.to_console ? StreamLog::Way::kConsole : StreamLog::Way::kNowhere);
      }
      if (spec_.to_console) return absl::OkStatus();
      child_end_.reset(::open("/dev/null", O_WRONLY | O_CLOEXEC));
      return child_end_.valid()
                 ? absl::OkStatus()
                 : base::SystemFailure(absl::StatusCode::kInternal, "open", "/dev/null");
    }
    if (spec_.to_console) {
      if (std::optional<PseudoTerminal> terminal = OpenPseudoTerminal(console_.fd(kind_))) {
        child_end_ = std::move(terminal->worker_end);
        our_end_.emplace(io, terminal->our_end.release());
        is_terminal_ = true;
        console_.AddTerminal(kind_, our_end_->native_handle());
      }
    }
  }
  if (!our_end_.has_value()) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
      return base::SystemFailure(absl::StatusCode::kInternal, "make a pipe");
    }
    child_end_.reset(ends[1]);
    our_end_.emplace(io, ends[0]);
  }
  our_end_->non_blocking(true);
  return absl::OkStatus();
}

void Output::Start(pid_t pid) {
  child_end_.reset();
  if (spec_.to_console && !spec_.prefix.empty()) {
    prefixer_.emplace(LinePrefix(spec_.prefix, pid), console_.CanRewrite(kind_)
                                                         ? CarriageReturn::kRewritesLine
                                                         : CarriageReturn::kEndsLine);
  }
  if (filtered_file_.has_value()) {
    filter_.emplace(LinePrefix(spec_.prefix, pid));
    filter_->ShowOnly(spec_.filters);
  }
  if (our_end_.has_value()) AwaitReadable();
}

void Output::Drain() {
  if (!our_end_.has_value()) return;
  // Only what is there now: others may write faster than we read.
  int there = 0;
  ::ioctl(our_end_->native_handle(), FIONREAD, &there);
  std::size_t left = is_terminal_ ? kTerminalBuffer : static_cast<std::size_t>(there);
  while (left > 0) {
    const ReadResult result = ReadOnce(&left);
    if (result == ReadResult::kEnd) return Close();
    if (result == ReadResult::kNothingThere) return;
  }
}

void Output::Finish() {
  child_end_.reset();
  Drain();
  Close();
}

absl::Status Output::FinishForKept() {
  child_end_.reset();
  Drain();
  absl::Status status;
  if (our_end_.has_value()) {
    const std::string file = file_.has_value() ? spec_.file : "/dev/null";
    const bool shows = !file_.has_value() && spec_.to_console;
    const base::UniqueFd opened(shows ? -1 : ::open(file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    if (!shows && !opened.valid()) {
      status = base::SystemFailure(absl::StatusCode::kInternal, "open", file);
    } else {
      status = CopyApart(our_end_->native_handle(), shows ? console_.fd(kind_) : opened.get());
    }
  }
  Close();
  return status;
}

std::uint64_t Output::dropped_bytes() const {
  return (file_.has_value() ? file_->dropped_bytes() : 0) +
         (filtered_file_.has_value() ? filtered_file_->dropped_bytes() : 0);
}

void Output::AwaitReadable() {
  our_end_->async_wait(boost::asio::posix::stream_descriptor::wait_read,
                       lifetime_.Guard([this](boost::system::error_code error) {
                         if (!error && our_end_.has_value()) OnReadable();
                       }));
}

void Output::OnReadable() {
  std::size_t limit = kChunk;
  if (ReadOnce(&limit) == ReadResult::kEnd) return Close();
  ConsoleSink& sink = console_.sink(kind_);
  if (!spec_.to_console || sink.HasRoom()) return AwaitReadable();
  sink.WhenRoom(lifetime_.Guard([this] {
    if (our_end_.has_value()) AwaitReadable();
  }));
}

Output::ReadResult Output::ReadOnce(std::size_t* limit) {
  std::array<char, kChunk> buffer;
  const ssize_t count = TEMP_FAILURE_RETRY(
      ::read(our_end_->native_handle(), buffer.data(), std::min(*limit, buffer.size())));
  if (count < 0 && errno == EAGAIN) return ReadResult::kNothingThere;
  // A terminal ends with EIO.
  if (count <= 0) return ReadResult::kEnd;
  *limit -= static_cast<std::size_t>(count);
  PassOn(std::string_view(buffer.data(), static_cast<std::size_t>(count)));
  return ReadResult::kGotSome;
}

void Output::PassOn(std::string_view bytes) {
  last_output_ = std::chrono::steady_clock::now();
  tail_.Append(bytes);
  const std::uint64_t lost = file_.has_value() ? file_->dropped_bytes() : 0;
  Log(file_, bytes);
  if (spec_.log != nullptr) {
    const std::uint64_t newly_lost = file_.has_value() ? file_->dropped_bytes() - lost : 0;
    spec_.log->Append(bytes, bytes.size() - newly_lost, *last_output_);
  }
  const auto now = std::chrono::system_clock::now();
  if (filter_.has_value()) Log(filtered_file_, filter_->Feed(bytes, now));
  if (on_prompt_) partial_line_.OnBytes(bytes.find('\n') != bytes.npos, bytes.back() != '\n');
  if (!spec_.to_console) return;
  if (!prefixer_.has_value()) {
    console_.Write(kind_, bytes);
    return;
  }
  const std::string lines = prefixer_->Feed(bytes, now);
  console_.Write(kind_, lines, this);
  partial_line_.OnBytes(!lines.empty(), prefixer_->holds_back());
  const std::string rewritten = prefixer_->Rewritten(now);
  if (!rewritten.empty()) console_.Rewrite(kind_, this, rewritten);
}

bool Output::OnPartialLine() {
  if (!our_end_.has_value()) return true;
  pollfd more = {our_end_->native_handle(), POLLIN, 0};
  if (::poll(&more, 1, 0) > 0) return false;
  if (prefixer_.has_value()) {
    console_.ShowPart(kind_, this, prefixer_->Part(std::chrono::system_clock::now()));
  } else if (const std::string_view prompt = DebuggerPrompt(tail_.Text()); !prompt.empty()) {
    std::exchange(on_prompt_, nullptr)(std::string(prompt));
  }
  return true;
}

void Output::Log(std::optional<LogWriter>& file, std::string_view bytes) {
  if (!file.has_value() || bytes.empty()) return;
  const std::string loss = file->Write(bytes);
  if (!loss.empty() && on_log_loss_) on_log_loss_(loss);
}

void Output::Close() {
  if (!our_end_.has_value()) return;
  if (is_terminal_) console_.RemoveTerminal(kind_, our_end_->native_handle());
  our_end_.reset();
  if (spec_.log != nullptr) spec_.log->End();
  const auto now = std::chrono::system_clock::now();
  if (filter_.has_value()) Log(filtered_file_, filter_->Finish(now));
  if (prefixer_.has_value()) console_.Write(kind_, prefixer_->Finish(now), this);
}

namespace {

// Runs between fork and _exit in a program with threads; async-signal-safe calls only.
[[noreturn]] void Copy(int from, int to) {
  std::array<char, 4096> buffer;
  pollfd readable = {from, POLLIN, 0};
  bool takes = true;
  for (;;) {
    if (::poll(&readable, 1, -1) < 0 && errno != EINTR) ::_exit(1);
    const ssize_t count = ::read(from, buffer.data(), buffer.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    // A terminal ends with EIO.
    if (count <= 0) ::_exit(0);
    for (ssize_t written = 0; takes && written < count;) {
      const ssize_t more = ::write(to, buffer.data() + written, count - written);
      if (more > 0) written += more;
      pollfd writable = {to, POLLOUT, 0};
      if (more < 0 && errno == EAGAIN) ::poll(&writable, 1, -1);
      takes = more > 0 || errno == EAGAIN || errno == EINTR;
    }
  }
}

}  // namespace

absl::Status CopyApart(int from, int to) {
  const pid_t pid = ::fork();
  if (pid < 0) {
    return base::SystemFailure(absl::StatusCode::kInternal, "start a process for output");
  }
  if (pid > 0) return absl::OkStatus();
  ::setsid();
  for (const int signal : {SIGTERM, SIGINT, SIGQUIT, SIGHUP}) ::signal(signal, SIG_DFL);
  ::signal(SIGPIPE, SIG_IGN);
  ::prctl(PR_SET_NAME, "muster-output");
  // First move both out of the way of the final numbers.
  constexpr int kFirst = 3;
  const int in = ::fcntl(from, F_DUPFD, kFirst + 2), out = ::fcntl(to, F_DUPFD, kFirst + 2);
  ::dup2(in, kFirst);
  ::dup2(out, kFirst + 1);
  CloseFrom(kFirst + 2);
  for (int standard = 0; standard < kFirst; ++standard) ::close(standard);
  Copy(kFirst, kFirst + 1);
}

}  // namespace muster::worker
