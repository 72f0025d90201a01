#include "launcher/remote/own_program.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>
#include <utility>

#include <openssl/evp.h>
#include <openssl/sha.h>

#include "absl/cleanup/cleanup.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "base/failure.h"
#include "base/safe_path.h"

namespace muster::launcher {

std::string OwnProgram() {
  char path[PATH_MAX];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path);
  return size > 0 ? std::string(path, static_cast<std::size_t>(size)) : "muster";
}

namespace {

constexpr std::size_t kFilePiece = 256 * 1024;
// Tells zlib to write a gzip header.
constexpr int kGzipWindow = 15 + 16;

absl::Status Failed(int error) {
  return base::SystemFailure(absl::StatusCode::kInternal, "read this program", "", error);
}

// Calls `take` with each piece of the file.
absl::Status ReadOwnProgram(absl::FunctionRef<void(absl::string_view)> take) {
  const base::UniqueFd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return Failed(errno);
  std::string piece(kFilePiece, '\0');
  while (true) {
    const ssize_t size = ::read(file.get(), piece.data(), piece.size());
    if (size == 0) return absl::OkStatus();
    if (size < 0 && errno != EINTR) return Failed(errno);
    if (size > 0) take({piece.data(), static_cast<std::size_t>(size)});
  }
}

// Compresses a piece and appends the result to `packed`.
void Deflate(z_stream& stream, absl::string_view piece, int flush, std::string& packed) {
  std::array<char, 64 * 1024> out;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
  stream.avail_in = static_cast<uInt>(piece.size());
  do {
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = out.size();
    deflate(&stream, flush);
    packed.append(out.data(), out.size() - stream.avail_out);
  } while (stream.avail_out == 0);
}

// Finds the build id in the notes of the program itself, which is listed first.
int FindBuild(dl_phdr_info* info, std::size_t, void* build) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type != PT_NOTE) continue;
    const auto align = [](std::size_t size) { return (size + 3) & ~std::size_t{3}; };
    const char* at = reinterpret_cast<const char*>(info->dlpi_addr + header.p_vaddr);
    const char* const end = at + header.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const char* const name = at + sizeof note;
      const char* const text = name + align(note.n_namesz);
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof ELF_NOTE_GNU &&
          std::memcmp(name, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0) {
        *static_cast<std::string*>(build) = absl::BytesToHexString({text, note.n_descsz});
        return 1;
      }
      at = text + align(note.n_descsz);
    }
  }
  return 1;
}

}  // namespace

absl::StatusOr<std::string> HashOwnProgram() {
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(),
                                                                   EVP_MD_CTX_free);
  EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr);
  const absl::Status status = ReadOwnProgram([&](absl::string_view piece) {
    EVP_DigestUpdate(context.get(), piece.data(), piece.size());
  });
  if (!status.ok()) return status;
  std::array<char, SHA256_DIGEST_LENGTH> hash{};
  EVP_DigestFinal_ex(context.get(), reinterpret_cast<unsigned char*>(hash.data()), nullptr);
  return absl::BytesToHexString({hash.data(), hash.size()});
}

absl::StatusOr<std::string> PackOwnProgram() {
  z_stream stream = {};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    return absl::ResourceExhaustedError("pack this program: no memory");
  }
  const absl::Cleanup end = [&stream] { deflateEnd(&stream); };
  std::string packed;
  const absl::Status status =
      ReadOwnProgram([&](absl::string_view piece) { Deflate(stream, piece, Z_NO_FLUSH, packed); });
  if (!status.ok()) return status;
  Deflate(stream, "", Z_FINISH, packed);
  return packed;
}

std::string OwnBuild() {
  std::string build;
  dl_iterate_phdr(FindBuild, &build);
  return build;
}

absl::StatusOr<std::unique_ptr<HostPlace>> HostPlace::Take(const std::vector<std::string>& dirs,
                                                           const std::string& job, int host) {
  if (job.empty() || job.find('/') != std::string::npos) {
    return absl::InvalidArgumentError("received an invalid message from the parent");
  }
  const std::string name = absl::StrCat("host-", job, ".", host, ".lock");
  absl::Status first_failure;
  for (const std::string& dir : dirs) {
    auto directory = base::OpenDirectory(dir, {.ours_alone = true, .make = 0700});
    first_failure.Update(directory.status());
    if (!directory.ok()) continue;
    for (;;) {
      base::UniqueFd file(::openat(directory->get(), name.c_str(),
                                   O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
      if (file.get() < 0) {
        return base::SystemFailure(absl::StatusCode::kInternal, "take the host's place in the job");
      }
      if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno == EINTR) continue;
        return absl::UnavailableError("what was started there before is still ending");
      }
      // The previous owner may have removed the file after we opened it.
      struct stat now = {};
      if (::fstat(file.get(), &now) == 0 && now.st_nlink == 0) continue;
      return std::unique_ptr<HostPlace>(
          new HostPlace(*std::move(directory), name, std::move(file)));
    }
  }
  return first_failure.ok() ? absl::InternalError("no directory is named") : first_failure;
}

HostPlace::HostPlace(base::UniqueFd directory, std::string name, base::UniqueFd file)
    : directory_(std::move(directory)), name_(std::move(name)), file_(std::move(file)) {}

HostPlace::~HostPlace() {
  ::unlinkat(directory_.get(), name_.c_str(), 0);
}

}  // namespace muster::launcher
