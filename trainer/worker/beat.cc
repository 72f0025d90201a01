#include "trainer/worker/beat.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace muster::trainer {

BeatSender::BeatSender(std::string socket, int rank) : socket_(std::move(socket)), rank_(rank) {
  if (socket_.empty() || socket_.size() >= sizeof(sockaddr_un::sun_path)) return;
  fd_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

BeatSender::~BeatSender() {
  if (fd_ >= 0) ::close(fd_);
}

void BeatSender::Send(std::int64_t step, const StepDetails& details) {
  if (fd_ < 0) return;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  socket_.copy(address.sun_path, socket_.size());
  std::string text = absl::StrCat("beat ", rank_, " ", step);
  if (details.loss) absl::StrAppendFormat(&text, " loss=%.6g", *details.loss);
  if (details.samples_per_second) {
    absl::StrAppendFormat(&text, " samples_per_second=%.6g", *details.samples_per_second);
  }
  for (const StepDetails::Part& part : details.parts) {
    absl::StrAppendFormat(&text, " %s=%.6f", part.name, part.seconds);
  }
  // A launcher that does not listen is none of the training's concern.
  [[maybe_unused]] const ssize_t sent =
      ::sendto(fd_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
               reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

}  // namespace muster::trainer
