#include "worker/output.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/log_file.h"

namespace muster::worker {
namespace {

// A pipe's usual size: one read empties it.
constexpr std::size_t kChunk = 64 * 1024;

absl::Status SystemError(const char* attempt) {
  return absl::InternalError(absl::StrCat(attempt, ": ", std::strerror(errno)));
}

// The end of a file that somebody else wrote from `start` on; empty when it cannot be read.
std::string FileTail(const std::string& path, std::uint64_t start) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  struct stat info;
  if (!file.valid() || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return "";
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (size <= start) return "";
  std::string bytes(std::min<std::uint64_t>(size - start, kMaxTail + 1), '\0');
  const ssize_t count =
      ::pread(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(size - bytes.size()));
  bytes.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return TailOf(bytes, kMaxTail);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Output>> Output::Open(boost::asio::io_context& io,
                                                     const OutputSpec& spec, StreamKind kind,
                                                     Console& console, std::string owner,
                                                     WarningCallback on_warning) {
  std::unique_ptr<Output> output(
      new Output(spec, kind, console, std::move(owner), std::move(on_warning)));
  const absl::Status status = output->OpenEnds(io);
  if (!status.ok()) return status;
  return output;
}

Output::Output(const OutputSpec& spec, StreamKind kind, Console& console, std::string owner,
               WarningCallback on_warning)
    : spec_(spec),
      kind_(kind),
      owner_(std::move(owner)),
      on_warning_(std::move(on_warning)),
      console_(console) {
  if (spec_.to_console && !spec_.prefix.empty()) prefixer_.emplace(spec_.prefix);
}

absl::Status Output::OpenEnds(boost::asio::io_context& io) {
  if (!spec_.file.empty()) {
    absl::StatusOr<UniqueFd> file = OpenLogFile(spec_.file);
    if (!file.ok()) return file.status();
    if (!spec_.to_console) {
      struct stat info;
      if (::fstat(file->get(), &info) == 0) file_start_ = static_cast<std::uint64_t>(info.st_size);
      child_end_ = *std::move(file);
      return absl::OkStatus();
    }
    file_ = *std::move(file);
  } else if (!spec_.keep_tail && !prefixer_.has_value()) {
    if (spec_.to_console) return absl::OkStatus();
    child_end_.reset(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    return child_end_.valid() ? absl::OkStatus() : SystemError("open /dev/null");
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return SystemError("make a pipe");
  child_end_.reset(ends[1]);
  pipe_.emplace(io, ends[0]);
  pipe_->non_blocking(true);
  return absl::OkStatus();
}

void Output::Start() {
  child_end_.reset();
  if (pipe_.has_value()) AwaitReadable();
}

void Output::Finish() {
  child_end_.reset();
  if (!pipe_.has_value()) return;
  // Only what is there now: others may write faster than we read.
  int there = 0;
  ::ioctl(pipe_->native_handle(), FIONREAD, &there);
  for (auto left = static_cast<std::size_t>(there); left > 0;) {
    if (ReadOnce(&left) != ReadResult::kGotSome) break;
  }
  Close();
}

std::string Output::Tail() const {
  if (!spec_.file.empty() && !spec_.to_console) return FileTail(spec_.file, file_start_);
  return tail_.Text();
}

void Output::AwaitReadable() {
  pipe_->async_wait(boost::asio::posix::stream_descriptor::wait_read,
                    [this, alive = std::weak_ptr<void>(alive_)](boost::system::error_code error) {
                      if (!alive.expired() && !error && pipe_.has_value()) OnReadable();
                    });
}

void Output::OnReadable() {
  std::size_t limit = kChunk;
  if (ReadOnce(&limit) == ReadResult::kEnd) {
    Close();
    return;
  }
  ConsoleSink& sink = console_.sink(kind_);
  if (!spec_.to_console || sink.HasRoom()) {
    AwaitReadable();
    return;
  }
  sink.WhenRoom([this, alive = std::weak_ptr<void>(alive_)] {
    if (!alive.expired() && pipe_.has_value()) AwaitReadable();
  });
}

Output::ReadResult Output::ReadOnce(std::size_t* limit) {
  std::array<char, kChunk> buffer;
  ssize_t count;
  do {
    count = ::read(pipe_->native_handle(), buffer.data(), std::min(*limit, buffer.size()));
  } while (count < 0 && errno == EINTR);
  if (count < 0 && errno == EAGAIN) return ReadResult::kNothingThere;
  if (count <= 0) return ReadResult::kEnd;
  *limit -= static_cast<std::size_t>(count);
  PassOn(std::string_view(buffer.data(), static_cast<std::size_t>(count)));
  return ReadResult::kGotSome;
}

void Output::PassOn(std::string_view bytes) {
  tail_.Append(bytes);
  if (file_.valid()) WriteToFile(bytes);
  if (!spec_.to_console) return;
  if (!prefixer_.has_value()) {
    console_.Write(kind_, bytes);
    return;
  }
  const std::string lines = prefixer_->Feed(bytes);
  if (!lines.empty()) console_.Write(kind_, lines);
}

void Output::WriteToFile(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file_.get(), bytes.data(), bytes.size());
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
      continue;
    }
    if (errno == EINTR) continue;
    // A full disk may get room again, so the next bytes are tried anew; it is told once.
    if (dropped_bytes_ == 0 && on_warning_) {
      on_warning_(absl::StrCat(owner_, ": write ", spec_.file, ": ", std::strerror(errno),
                               "; output is being lost"));
    }
    dropped_bytes_ += bytes.size();
    return;
  }
}

void Output::Close() {
  pipe_.reset();
  file_.reset();
  if (!prefixer_.has_value()) return;
  const std::string rest = prefixer_->Finish();
  if (!rest.empty()) console_.Write(kind_, rest);
}

}  // namespace muster::worker
