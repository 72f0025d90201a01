#include "trainer/comm/host/shm_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

#include "base/failure.h"

namespace muster::trainer {
namespace {

constexpr char kDirectory[] = "/dev/shm";
// The secret is at the start, and takes up a page so that the rest is aligned.
constexpr std::size_t kPrefix = 4096;
constexpr std::size_t kSecretLength = 32;

// 128 random bits as text.
std::string NewSecret() {
  std::array<std::uint64_t, 2> bits{};
  // Cannot fail: below 256 bytes, and the kernel's pool was seeded before any rank ran.
  if (getrandom(bits.data(), sizeof bits, 0) != sizeof bits) std::abort();
  return absl::StrCat(absl::Hex(bits[0], absl::kZeroPad16), absl::Hex(bits[1], absl::kZeroPad16));
}

absl::Status Failed(const std::string& what, int error) {
  return base::SystemFailure(absl::StatusCode::kUnavailable, what, "", error);
}

std::string MegaBytes(std::size_t bytes) {
  return absl::StrFormat("%.1f MB", static_cast<double>(bytes) / (1 << 20));
}

// Both nullptr and MAP_FAILED as nullptr.
std::byte* Map(int fd, std::size_t length) {
  void* const mapping = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return mapping == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapping);
}

}  // namespace

ShmSegment::ShmSegment(int fd, std::byte* mapping, std::size_t size, std::string handle)
    : fd_(fd), data_(mapping + kPrefix), size_(size), handle_(std::move(handle)) {}

absl::StatusOr<ShmSegment> ShmSegment::Create(std::size_t bytes) {
  const std::string what = absl::StrCat("make ", MegaBytes(bytes), " of shared memory in /dev/shm");
  const auto no_room = [&] {
    return absl::UnavailableError(
        absl::StrCat(what, ": ", MegaBytes(Free()),
                     " are free there; give it more (docker run --shm-size) or use --comm gloo"));
  };
  // Checked first, because a failing attempt would briefly take all memory away from others.
  if (Free() < kPrefix + bytes) return no_room();
  // O_EXCL: it cannot be linked to a name later either.
  const int fd = open(kDirectory, O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) return Failed(what, errno);
  const std::size_t length = kPrefix + bytes;
  // Allocates the memory now. With a sparse file, every access would raise SIGBUS once /dev/shm is
  // full.
  const int error = posix_fallocate(fd, 0, static_cast<off_t>(length));
  if (error == ENOSPC || error == EFBIG) {
    close(fd);
    return no_room();
  }
  std::byte* const mapping = error == 0 ? Map(fd, length) : nullptr;
  if (mapping == nullptr) {
    const int why = error != 0 ? error : errno;
    close(fd);
    return Failed(what, why);
  }
  const std::string secret = NewSecret();
  std::memcpy(mapping, secret.data(), secret.size());
  return ShmSegment(fd, mapping, bytes, absl::StrCat(getpid(), ":", fd, ":", bytes, ":", secret));
}

absl::StatusOr<ShmSegment> ShmSegment::Open(const std::string& handle) {
  const std::vector<std::string> fields = absl::StrSplit(handle, ':');
  std::uint32_t pid = 0;
  std::uint32_t maker_fd = 0;
  std::uint64_t bytes = 0;
  if (fields.size() != 4 || fields[3].size() != kSecretLength ||
      !absl::SimpleAtoi(fields[0], &pid) || !absl::SimpleAtoi(fields[1], &maker_fd) ||
      !absl::SimpleAtoi(fields[2], &bytes)) {
    return absl::UnavailableError(
        absl::StrCat("open shared memory: \"", handle, "\" is not a segment's handle"));
  }
  const std::string what = absl::StrCat("open the shared memory of process ", pid);
  const int fd =
      open(absl::StrCat("/proc/", pid, "/fd/", maker_fd).c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) return Failed(what, errno);
  const std::size_t length = kPrefix + bytes;
  // By now the descriptor may refer to anything.
  struct stat file {};
  const bool fits = fstat(fd, &file) == 0 && S_ISREG(file.st_mode) &&
                    static_cast<std::uint64_t>(file.st_size) == length;
  std::byte* const mapping = fits ? Map(fd, length) : nullptr;
  const int error = errno;
  close(fd);
  if (fits && mapping == nullptr) return Failed(what, error);
  if (!fits || std::memcmp(mapping, fields[3].data(), kSecretLength) != 0) {
    if (mapping != nullptr) munmap(mapping, length);
    return absl::UnavailableError(absl::StrCat(what, ": another file has taken its place"));
  }
  return ShmSegment(-1, mapping, bytes, handle);
}

std::size_t ShmSegment::Free() {
  struct statvfs file_system {};
  if (statvfs(kDirectory, &file_system) != 0) return 0;
  return static_cast<std::size_t>(file_system.f_bavail) * file_system.f_bsize;
}

ShmSegment::ShmSegment(ShmSegment&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      data_(std::exchange(other.data_, nullptr)),
      size_(other.size_),
      handle_(std::move(other.handle_)) {}

ShmSegment& ShmSegment::operator=(ShmSegment&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(handle_, other.handle_);
  return *this;
}

ShmSegment::~ShmSegment() {
  Withdraw();
  if (data_ != nullptr) munmap(data_ - kPrefix, kPrefix + size_);
}

void ShmSegment::Withdraw() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

absl::StatusOr<ShmSegment> MakeSharedSegment(const HostLayout& layout,
                                             const std::vector<int>& members, std::size_t bytes,
                                             const GatherText& gather) {
  absl::StatusOr<ShmSegment> segment = absl::UnavailableError("");
  if (layout.leads()) segment = ShmSegment::Create(bytes);
  const std::vector<std::string> handles =
      gather(layout.leads() && segment.ok() ? segment->handle() : "");
  const std::string& handle = handles[static_cast<std::size_t>(layout.local_ranks[0])];
  // Without a handle the leader has failed, and reports the reason.
  if (!layout.leads() && !handle.empty()) segment = ShmSegment::Open(handle);
  const std::vector<std::string> troubles = gather(std::string(segment.status().message()));
  for (std::size_t rank = 0; rank < troubles.size(); ++rank) {
    if (troubles[rank].empty()) continue;
    return absl::UnavailableError(absl::StrCat("rank ", members[rank], ": ", troubles[rank]));
  }
  segment->Withdraw();
  return segment;
}

}  // namespace muster::trainer
