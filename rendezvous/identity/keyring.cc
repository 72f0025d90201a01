#include "rendezvous/identity/keyring.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/failure.h"
#include "base/safe_path.h"
#include "base/unique_fd.h"
#include "rendezvous/identity/file_stamp.h"
#include "rendezvous/identity/token_file.h"

namespace muster::rendezvous {
namespace {

constexpr char kReadDirectory[] = "read tokens in";

bool IsTenantName(absl::string_view name) {
  constexpr std::size_t kLongest = 64;
  return !name.empty() && name.size() <= kLongest && absl::ascii_isalnum(name[0]) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return absl::ascii_isalnum(c) || c == '_' || c == '-'; });
}

// The names of tenants in the directory, in order.
absl::StatusOr<std::vector<std::string>> TenantsIn(const std::string& directory) {
  const auto failure = [&] {
    return base::SystemFailure(absl::StatusCode::kFailedPrecondition, kReadDirectory, directory,
                               errno);
  };
  const absl::StatusOr<base::UniqueFd> opened = base::OpenDirectory(directory);
  if (!opened.ok()) {
    return base::Failure(absl::StatusCode::kFailedPrecondition, kReadDirectory, directory,
                         opened.status().message());
  }
  struct stat status = {};
  if (::fstat(opened->get(), &status) != 0) return failure();
  if ((status.st_uid != ::geteuid() && status.st_uid != 0) || (status.st_mode & 022) != 0) {
    return base::Failure(absl::StatusCode::kFailedPrecondition, kReadDirectory, directory,
                         "other users can put files there; `chmod go-w` it, and it must be yours");
  }
  // The stream takes it over.
  const int readable = ::openat(opened->get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const stream = readable < 0 ? nullptr : ::fdopendir(readable);
  if (stream == nullptr) return failure();
  std::vector<std::string> names;
  while (const dirent* const entry = ::readdir(stream)) {
    std::string name = entry->d_name;
    if (!IsTenantName(name)) continue;
    struct stat file = {};
    if (::fstatat(opened->get(), name.c_str(), &file, 0) == 0 && S_ISDIR(file.st_mode)) {
      continue;
    }
    names.push_back(std::move(name));
  }
  ::closedir(stream);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<Key> KeysOf(const std::string& tenant, const TokenFile& file) {
  std::vector<Key> keys;
  const auto add = [&](const Token& token, absl::Time until) {
    keys.push_back({tenant, Authority(token), false, until, token.Fingerprint()});
    const Token metrics = token.ForMetrics();
    keys.push_back({tenant, Authority(metrics), true, until, metrics.Fingerprint()});
  };
  add(file.token, absl::InfiniteFuture());
  if (file.former) add(*file.former, file.former_until);
  return keys;
}

// Whether none of these authorities belongs to somebody else; they are in `claimed` then.
bool Claim(const std::vector<Key>& keys, std::set<std::string>& claimed) {
  std::set<std::string> names;
  for (const Key& key : keys) names.insert(key.authority.name());
  const auto is_claimed = [&](const std::string& name) { return claimed.count(name) > 0; };
  if (names.size() < keys.size() || std::any_of(names.begin(), names.end(), is_claimed)) {
    return false;
  }
  claimed.merge(names);
  return true;
}

}  // namespace

struct Keyring::State {
  struct File {
    FileStamp stamp;
    std::vector<Key> keys;
  };

  // Brings `files` up to date. The error is about one of those that are left as they were.
  absl::Status Read() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // What there is in `files`, as one list.
  void Compose(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void Tell(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  // Where they are; empty: they do not change.
  std::string file;
  std::string directory;
  Trouble trouble;

  absl::Mutex mutex;
  std::map<std::string, File> files ABSL_GUARDED_BY(mutex);  // by tenant
  Keys keys ABSL_GUARDED_BY(mutex);
  // When the first of them no longer counts.
  absl::Time good_until ABSL_GUARDED_BY(mutex) = absl::InfinitePast();
  // What was said last, so that it is said once.
  std::string told ABSL_GUARDED_BY(mutex);
};

absl::Status Keyring::State::Read() {
  std::vector<std::string> tenants = {""};
  if (!directory.empty()) {
    absl::StatusOr<std::vector<std::string>> names = TenantsIn(directory);
    if (!names.ok()) return names.status();
    tenants = *std::move(names);
  }
  absl::Status wrong;
  std::map<std::string, File> now, fresh;
  std::set<std::string> claimed;
  for (const std::string& tenant : tenants) {
    const std::string path = directory.empty() ? file : absl::StrCat(directory, "/", tenant);
    const FileStamp stamp = StampOf(path);
    const auto before = files.find(tenant);
    if (before == files.end() || before->second.stamp != stamp) {
      const absl::StatusOr<TokenFile> tokens = ReadTokens(path);
      if (tokens.ok()) {
        fresh.emplace(tenant, File{stamp, KeysOf(tenant, *tokens)});
        continue;
      }
      wrong.Update(tokens.status());
    }
    if (before != files.end() && Claim(before->second.keys, claimed)) now.insert(*before);
  }
  bool changed = false;
  // Last, so that nobody takes a token away from whoever had it first.
  for (auto& [tenant, its] : fresh) {
    if (Claim(its.keys, claimed)) {
      now.emplace(tenant, std::move(its));
      changed = true;
      continue;
    }
    wrong.Update(
        base::Failure(absl::StatusCode::kFailedPrecondition, kReadDirectory, directory,
                      absl::StrCat("'", tenant,
                                   "' has a token that another tenant has, too, and they could "
                                   "not be told apart")));
    const auto before = files.find(tenant);
    if (before != files.end() && Claim(before->second.keys, claimed)) now.insert(*before);
  }
  if (changed || now.size() != files.size()) {
    files = std::move(now);
    good_until = absl::InfinitePast();
  }
  return wrong;
}

void Keyring::State::Compose(absl::Time now) {
  if (now < good_until) return;
  auto composed = std::make_shared<std::vector<Key>>();
  good_until = absl::InfiniteFuture();
  for (const auto& [tenant, file_of_tenant] : files) {
    for (const Key& key : file_of_tenant.keys) {
      if (key.until <= now) continue;
      good_until = std::min(good_until, key.until);
      composed->push_back(key);
    }
  }
  keys = std::move(composed);
}

void Keyring::State::Tell(const absl::Status& status) {
  const std::string sentence(status.message());
  if (std::exchange(told, sentence) == sentence || sentence.empty() || !trouble) return;
  trouble(sentence);
}

Keyring Keyring::Of(const Token& token) {
  auto state = std::make_shared<State>();
  {
    const absl::MutexLock lock(&state->mutex);
    state->files.emplace("", State::File{{}, KeysOf("", {.token = token})});
  }
  return Keyring(std::move(state));
}

absl::StatusOr<Keyring> Keyring::OfFile(std::string path, Trouble trouble) {
  auto state = std::make_shared<State>();
  state->file = std::move(path);
  state->trouble = std::move(trouble);
  {
    const absl::MutexLock lock(&state->mutex);
    if (absl::Status status = state->Read(); !status.ok()) return status;
  }
  return Keyring(std::move(state));
}

absl::StatusOr<Keyring> Keyring::OfDirectory(std::string path, Trouble trouble) {
  return OfDirectory(std::move(path), std::move(trouble), /*again=*/false);
}

absl::StatusOr<Keyring> Keyring::OfDirectoryAgain(std::string path, Trouble trouble) {
  return OfDirectory(std::move(path), std::move(trouble), /*again=*/true);
}

absl::StatusOr<Keyring> Keyring::OfDirectory(std::string path, Trouble trouble, bool again) {
  auto state = std::make_shared<State>();
  state->directory = std::move(path);
  state->trouble = std::move(trouble);
  {
    const absl::MutexLock lock(&state->mutex);
    const absl::Status status = state->Read();
    if (!status.ok() && (!again || state->files.empty())) return status;
    if (state->files.empty()) {
      return base::Failure(absl::StatusCode::kFailedPrecondition, kReadDirectory, state->directory,
                           "there is none; make one for each tenant with `muster token new "
                           "DIR/TENANT`");
    }
  }
  return Keyring(std::move(state));
}

Keys Keyring::Now() const {
  const absl::MutexLock lock(&state_->mutex);
  if (!state_->file.empty() || !state_->directory.empty()) state_->Tell(state_->Read());
  state_->Compose(absl::Now());
  return state_->keys;
}

Keys Keyring::Known() const {
  const absl::MutexLock lock(&state_->mutex);
  state_->Compose(absl::Now());
  return state_->keys;
}

std::optional<Principal> Keyring::Identify(const std::vector<Key>& keys, absl::string_view pem) {
  for (const Key& key : keys) {
    const std::optional<Role> role = key.authority.RoleOf(pem);
    if (role) return Principal{key.tenant, key.metrics ? Role::kMetrics : *role};
  }
  return std::nullopt;
}

std::optional<Principal> Keyring::Identify(const std::vector<Key>& keys, const Token& token) {
  // A stranger's guess must cost the loop next to nothing.
  const auto fingerprint = token.Fingerprint();
  for (const Key& key : keys) {
    if (key.fingerprint != fingerprint) continue;
    return Principal{key.tenant, key.metrics ? Role::kMetrics : Role::kTool};
  }
  return std::nullopt;
}

}  // namespace muster::rendezvous
