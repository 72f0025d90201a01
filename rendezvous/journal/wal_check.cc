#include "rendezvous/journal/wal_check.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/failure.h"

namespace muster::rendezvous {
namespace {

using Bytes = std::vector<unsigned char>;

constexpr std::size_t kHeaderSize = 32;
constexpr std::size_t kFrameHeaderSize = 24;
// The last bit is the byte order in which the checksum reads words: 1 is big-endian.
constexpr std::uint32_t kMagic = 0x377f0682;
constexpr std::uint32_t kVersion = 3007000;

std::uint32_t BigEndian(const unsigned char* at) {
  return std::uint32_t{at[0]} << 24 | std::uint32_t{at[1]} << 16 | std::uint32_t{at[2]} << 8 |
         std::uint32_t{at[3]};
}

std::uint32_t LittleEndian(const unsigned char* at) {
  return __builtin_bswap32(BigEndian(at));
}

// Runs through the whole log: each frame's checksum continues that of the frame before.
struct FrameChecksum {
  std::uint32_t first = 0;
  std::uint32_t second = 0;

  friend bool operator==(const FrameChecksum&, const FrameChecksum&) = default;

  void Add(const unsigned char* bytes, std::size_t size, bool big_endian) {
    big_endian ? AddWords<BigEndian>(bytes, size) : AddWords<LittleEndian>(bytes, size);
  }

 private:
  template <std::uint32_t (*word)(const unsigned char*)>
  void AddWords(const unsigned char* bytes, std::size_t size) {
    for (std::size_t at = 0; at < size; at += 8) {
      first += word(bytes + at) + second;
      second += word(bytes + at + 4) + first;
    }
  }
};

FrameChecksum StoredAt(const unsigned char* at) {
  return {BigEndian(at), BigEndian(at + 4)};
}

struct Header {
  bool big_endian = false;
  std::size_t page_size = 0;
  std::uint64_t salt = 0;
  FrameChecksum checksum;
};

std::uint64_t SaltAt(const unsigned char* at) {
  return std::uint64_t{BigEndian(at)} << 32 | BigEndian(at + 4);
}

// nullopt: not a valid header.
std::optional<Header> ParseHeader(const unsigned char* bytes) {
  Header header;
  const std::uint32_t magic = BigEndian(bytes);
  header.big_endian = (magic & 1) != 0;
  header.page_size = BigEndian(bytes + 8);
  header.salt = SaltAt(bytes + 16);
  header.checksum = StoredAt(bytes + 24);
  if ((magic & ~1U) != kMagic || BigEndian(bytes + 4) != kVersion) return std::nullopt;
  if (header.page_size < 512 || header.page_size > 65536 ||
      (header.page_size & (header.page_size - 1)) != 0) {
    return std::nullopt;
  }
  FrameChecksum computed;
  computed.Add(bytes, 24, header.big_endian);
  if (computed != header.checksum) return std::nullopt;
  return header;
}

struct Frame {
  std::uint64_t offset = 0;
  // In the frame that commits a transaction: the database's pages after it; 0 in all others.
  std::uint32_t commit_size = 0;
  // Belongs to this log, not to a former one whose space was reused.
  bool is_current = false;
  FrameChecksum stored;
  Bytes bytes;

  // Its correct checksum after a frame that ended with `seed`.
  FrameChecksum Compute(FrameChecksum seed, bool big_endian) const {
    seed.Add(bytes.data(), 8, big_endian);
    seed.Add(bytes.data() + kFrameHeaderSize, bytes.size() - kFrameHeaderSize, big_endian);
    return seed;
  }
};

// Whether `frame`, which is not marked as a commit, has the checksum of a commit of a database of
// `least` to `most` pages. The checksum is linear in that number, so one pass is enough for all.
bool WasCommit(Frame frame, const FrameChecksum& seed, bool big_endian, std::uint32_t least,
               std::uint32_t most) {
  const auto with = [&](std::uint32_t pages) {
    for (int i = 0; i < 4; ++i) {
      frame.bytes[4 + i] = static_cast<unsigned char>(pages >> (8 * (3 - i)));
    }
    return frame.Compute(seed, big_endian);
  };
  // As the checksum reads it: the four bytes in the machine's own order.
  const auto as_word = [&](std::uint32_t pages) {
    return big_endian ? pages : __builtin_bswap32(pages);
  };
  const FrameChecksum base = with(0);
  const FrameChecksum one = with(as_word(1));
  const std::uint32_t slope_first = one.first - base.first;
  const std::uint32_t slope_second = one.second - base.second;
  for (std::uint64_t pages = least; pages <= most; ++pages) {
    const std::uint32_t word = as_word(static_cast<std::uint32_t>(pages));
    if (base.first + word * slope_first == frame.stored.first &&
        base.second + word * slope_second == frame.stored.second) {
      return true;
    }
  }
  return false;
}

// Looks for proof that the first bad frame was once good, from that frame on.
class Evidence {
 public:
  // `seed`: the checksum of the frame before the bad one. `pages`: the database's size at the last
  // commit before it, 0 if there was none.
  Evidence(const Header& header, Frame bad, FrameChecksum seed, std::uint32_t pages)
      : header_(header),
        bad_(std::move(bad)),
        seed_(seed),
        pages_(pages),
        computed_(bad_.Compute(seed, header.big_endian)),
        before_(bad_.stored),
        commits_before_(bad_.is_current && bad_.commit_size != 0) {}

  // Proof in the bad frame itself.
  bool OnBadFrame() const {
    // Only the log's salt is wrong, which the checksum does not cover.
    return !bad_.is_current && computed_ == bad_.stored;
  }

  // Proof in a later frame; called for each in order.
  bool OnLaterFrame(const Frame& frame) {
    const bool is_next = std::exchange(is_next_, false);
    const FrameChecksum before = std::exchange(before_, frame.stored);
    const bool after_commit = std::exchange(commits_before_, frame.is_current && frame.commit_size);
    if (!frame.is_current) return false;
    // It follows the frame before it, in that one's present or its original form.
    const bool linked = frame.Compute(before, header_.big_endian) == frame.stored ||
                        (is_next && frame.Compute(computed_, header_.big_endian) == frame.stored);
    if (!linked) return false;
    if (after_commit) return true;
    if (frame.commit_size == 0) return false;
    if (++commits_ > 1) return true;
    return bad_.is_current && bad_.commit_size == 0 &&
           WasCommit(bad_, seed_, header_.big_endian, pages_ == 0 ? 1 : pages_, frame.commit_size);
  }

 private:
  const Header header_;
  const Frame bad_;
  const FrameChecksum seed_;
  const std::uint32_t pages_;
  const FrameChecksum computed_;

  bool is_next_ = true;
  FrameChecksum before_;
  bool commits_before_;
  int commits_ = 0;
};

absl::Status CannotRead(std::uint64_t offset) {
  return absl::DataLossError(absl::StrCat("it cannot be read at byte ", offset));
}

}  // namespace

absl::StatusOr<WalCheck> CheckWal(const WalReader& read, std::uint64_t size) {
  using State = WalCheck::State;
  if (size == 0) return WalCheck{};
  if (size < kHeaderSize) return WalCheck{State::kTorn, 0};
  unsigned char header_bytes[kHeaderSize];
  if (!read(0, kHeaderSize, header_bytes)) return CannotRead(0);
  const std::optional<Header> header = ParseHeader(header_bytes);
  if (!header.has_value()) {
    // SQLite syncs the header before it writes the first frame.
    if (size == kHeaderSize) return WalCheck{State::kTorn, 0};
    return WalCheck{State::kDamaged, 0, "its header has a wrong checksum"};
  }

  std::uint64_t committed = kHeaderSize;
  std::uint32_t pages = 0;
  FrameChecksum seed = header->checksum;
  std::optional<Evidence> evidence;
  // Whether the log's writer began something after the last commit.
  bool torn = false;
  std::uint64_t bad_at = 0;
  Frame frame;
  frame.bytes.resize(kFrameHeaderSize + header->page_size);
  for (frame.offset = kHeaderSize; size - frame.offset >= frame.bytes.size();
       frame.offset += frame.bytes.size()) {
    if (!read(frame.offset, frame.bytes.size(), frame.bytes.data())) {
      return CannotRead(frame.offset);
    }
    frame.commit_size = BigEndian(frame.bytes.data() + 4);
    frame.is_current = SaltAt(frame.bytes.data() + 8) == header->salt;
    frame.stored = StoredAt(frame.bytes.data() + 16);
    bool damaged = false;
    if (evidence.has_value()) {
      damaged = evidence->OnLaterFrame(frame);
    } else if (frame.is_current && frame.Compute(seed, header->big_endian) == frame.stored) {
      seed = frame.stored;
      torn = frame.commit_size == 0;
      if (!torn) {
        committed = frame.offset + frame.bytes.size();
        pages = frame.commit_size;
      }
    } else {
      evidence.emplace(*header, frame, seed, pages);
      bad_at = frame.offset;
      damaged = evidence->OnBadFrame();
      // A frame of a former log is the normal end of a log.
      torn = torn || frame.is_current;
    }
    if (damaged) {
      return WalCheck{State::kDamaged, bad_at,
                      absl::StrCat("the frame at byte ", bad_at,
                                   " has a wrong checksum, though "
                                   "what was written later is there")};
    }
  }
  torn = torn || (!evidence.has_value() && frame.offset != size);
  return WalCheck{torn ? State::kTorn : State::kWhole, committed};
}

absl::StatusOr<WalCheck> CheckWalFile(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    if (errno == ENOENT) return WalCheck{};
    return base::Failure(absl::StatusCode::kFailedPrecondition, "open", path, base::OpenCause());
  }
  const WalReader read = [fd](std::uint64_t offset, std::size_t size, unsigned char* into) {
    while (size > 0) {
      const ssize_t count = ::pread(fd, into, size, static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      into += count;
      offset += static_cast<std::uint64_t>(count);
      size -= static_cast<std::size_t>(count);
    }
    return true;
  };
  struct stat info;
  absl::StatusOr<WalCheck> check =
      ::fstat(fd, &info) != 0
          ? base::SystemFailure(absl::StatusCode::kFailedPrecondition, "look at", path)
          : CheckWal(read, static_cast<std::uint64_t>(info.st_size));
  ::close(fd);
  return check;
}

}  // namespace muster::rendezvous
