#include "launcher/doctor/bounded_look.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include <boost/asio/io_context.hpp>

#include "absl/strings/str_split.h"
#include "base/unique_fd.h"
#include "worker/process/descriptors.h"

namespace muster::launcher {
namespace {

constexpr char kWhole[] = "\1whole";

void WriteAll(int fd, std::string text) {
  text.push_back('\0');
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(fd, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) ::_exit(1);
    done += static_cast<std::size_t>(count);
  }
}

[[noreturn]] void LookInChild(int pipe, const std::function<void(const Say&)>& look) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Drop stdout and stderr, too: a reader of this program's output must not wait for a child that
  // never exits.
  constexpr int kPipe = 3;
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < kPipe; ++fd) ::dup2(nothing, fd);
  if (pipe != kPipe) ::dup2(pipe, kPipe);
  worker::CloseFrom(kPipe + 1);
  look([](const std::string& text) { WriteAll(kPipe, text); });
  WriteAll(kPipe, kWhole);
  ::_exit(0);
}

// Reads until the other end closes, or until `end`, which sets `is_late`.
std::string ReadUntil(int fd, std::chrono::steady_clock::time_point end, bool& is_late) {
  using std::chrono::milliseconds;
  std::string text;
  for (;;) {
    const auto left =
        std::chrono::ceil<milliseconds>(end - std::chrono::steady_clock::now()).count();
    pollfd ready = {.fd = fd, .events = POLLIN, .revents = 0};
    const int count = ::poll(&ready, 1, static_cast<int>(std::max<decltype(left)>(left, 0)));
    if (count < 0 && errno == EINTR) continue;
    is_late = count == 0;
    if (count <= 0) return text;
    std::array<char, 4096> piece;
    const ssize_t got = ::read(fd, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
}

ProbeOutput LookHere(const std::function<void(const Say&)>& look) {
  ProbeOutput output{.is_whole = true};
  look([&output](const std::string& text) { output.said.push_back(text); });
  return output;
}

}  // namespace

ProbeOutput LookWithin(std::chrono::milliseconds limit,
                       const std::function<void(const Say&)>& look) {
  const auto end = std::chrono::steady_clock::now() + limit;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return LookHere(look);
  const base::UniqueFd read_end(ends[0]);
  base::UniqueFd write_end(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) LookInChild(write_end.get(), look);
  write_end.reset();
  if (child < 0) return LookHere(look);
  ProbeOutput output;
  output.said = absl::StrSplit(ReadUntil(read_end.get(), end, output.is_late), '\0');
  // Text after the last zero byte is incomplete.
  output.said.pop_back();
  output.is_whole = !output.said.empty() && output.said.back() == kWhole;
  if (output.is_whole) output.said.pop_back();
  if (!output.is_whole) ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, output.is_whole ? 0 : WNOHANG);
  return output;
}

std::string OutputOf(worker::TimedCommandOptions options) {
  boost::asio::io_context io(1);
  std::string output;
  const auto command = worker::TimedCommand::Start(
      io, std::move(options),
      [&](worker::TimedCommandResult result) { output = std::move(result.output); });
  if (command.ok()) io.run();
  return output;
}

}  // namespace muster::launcher
