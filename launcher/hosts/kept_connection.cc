#include "launcher/hosts/kept_connection.h"

#include <openssl/sha.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstddef>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace muster::launcher {
namespace {

// ssh makes the socket with a dot and 16 characters behind its name, and renames it.
constexpr std::size_t kMaxPath = sizeof(sockaddr_un::sun_path) - 1 - 17;

// Nothing that ssh would replace in a path.
bool IsPlain(absl::string_view path) {
  return path.find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
             "/._-") == absl::string_view::npos;
}

bool IsOwnFolder(const std::string& path) {
  struct stat status = {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == ::geteuid() && (status.st_mode & 077) == 0;
}

// Containers may share a /tmp without sharing hosts' names, so this machine's is in it.
std::string SocketName(const Host& host) {
  std::array<char, HOST_NAME_MAX + 1> here{};
  ::gethostname(here.data(), here.size() - 1);
  const std::string way = absl::StrCat(here.data(), " ", host.Text());
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(way.data()), way.size(), digest.data());
  constexpr std::size_t kEnough = 16;
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest.data()), kEnough));
}

}  // namespace

std::optional<KeptConnection> FindKeptConnection(const Host& host, std::chrono::seconds time,
                                                 const Environment& environment) {
  if (time <= std::chrono::seconds::zero()) return std::nullopt;
  const std::string runtime = GetOr(environment, "XDG_RUNTIME_DIR", "");
  const std::string folder = IsPlain(runtime) && IsOwnFolder(runtime)
                                 ? absl::StrCat(runtime, "/muster-ssh")
                                 : absl::StrCat("/tmp/muster-ssh-", ::geteuid());
  ::mkdir(folder.c_str(), 0700);
  if (!IsOwnFolder(folder)) return std::nullopt;
  KeptConnection kept{.socket = absl::StrCat(folder, "/", SocketName(host)), .time = time};
  if (kept.socket.size() > kMaxPath) return std::nullopt;
  struct stat status = {};
  kept.is_there = ::lstat(kept.socket.c_str(), &status) == 0 && S_ISSOCK(status.st_mode);
  return kept;
}

}  // namespace muster::launcher
