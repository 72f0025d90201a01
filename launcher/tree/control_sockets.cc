#include "launcher/tree/control_sockets.h"

#include <openssl/sha.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "worker/env_names.h"

namespace muster::launcher {
namespace {

// What is left of a path for "user@host:port".
constexpr std::size_t kMaxPrefix = kMaxControlPath - 30;

// Nothing that ssh would replace in a path.
bool IsPlain(absl::string_view path) {
  return path.find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
             "/._-") == absl::string_view::npos;
}

bool IsOwnFolder(const std::string& path) {
  struct stat status = {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == ::geteuid() && (status.st_mode & 077) == 0 &&
         ::access(path.c_str(), W_OK) == 0;
}

// All that lives as this process does has the same.
std::string Surroundings() {
  std::string text;
  for (const char* const kind : {"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"}) {
    std::array<char, 64> name{};
    const std::string link = absl::StrCat("/proc/self/ns/", kind);
    // Where there are none of this kind, all have the same.
    [[maybe_unused]] const ssize_t size = ::readlink(link.c_str(), name.data(), name.size() - 1);
    absl::StrAppend(&text, name.data(), "\n");
  }
  for (const char* const name : {"cgroup", "limits", "oom_score_adj"}) {
    std::ifstream file(absl::StrCat("/proc/self/", name));
    text.append(std::istreambuf_iterator<char>(file), {});
  }
  std::array<char, HOST_NAME_MAX + 1> here{};
  ::gethostname(here.data(), here.size() - 1);
  absl::StrAppend(&text, ::getpriority(PRIO_PROCESS, 0), "\n", here.data());
  return text;
}

std::string Short(const std::string& text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  constexpr std::size_t kEnough = 6;
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest.data()), kEnough));
}

}  // namespace

std::optional<KeptConnections> FindKeptConnections(std::chrono::milliseconds time,
                                                   const Environment& environment) {
  const bool is_worker = environment.contains(worker::env::kAgentId);
  if (time <= std::chrono::milliseconds::zero() || is_worker) return std::nullopt;
  const std::string runtime = GetOr(environment, "XDG_RUNTIME_DIR", "");
  std::vector<std::string> folders;
  if (IsOwnFolder(runtime)) folders.push_back(absl::StrCat(runtime, "/muster-ssh"));
  folders.push_back(absl::StrCat("/tmp/muster-ssh-", ::geteuid()));
  for (const std::string& folder : folders) {
    const std::string prefix = absl::StrCat(folder, "/", Short(Surroundings()), "-");
    if (!IsPlain(prefix) || prefix.size() > kMaxPrefix) continue;
    ::mkdir(folder.c_str(), 0700);
    if (!IsOwnFolder(folder)) return std::nullopt;
    // To ssh, zero is for ever.
    return KeptConnections{.prefix = prefix, .time = std::chrono::ceil<std::chrono::seconds>(time)};
  }
  return std::nullopt;
}

}  // namespace muster::launcher
