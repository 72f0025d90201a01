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

namespace muster::rendezvous {
namespace {

constexpr char kReadDirectory[] = "read tokens in";

// Files rewritten in place do not change the directory; other tenants' are checked only this often.
constexpr absl::Duration kLookPause = absl::Seconds(1);

// From this many keys on they are indexed. A process with one token has few, and should not derive
// a metrics token's authority for nothing.
constexpr std::size_t kFewKeys = 8;

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
                         "other users can write to it; it must be yours, and `chmod go-w`");
  }
  // The stream takes over the descriptor.
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
  for (const FormerToken& former : file.former) add(former.token, former.until);
  return keys;
}

using Fingerprint = std::array<unsigned char, Token::kBytes>;

absl::string_view AsText(const Fingerprint& fingerprint) {
  return {reinterpret_cast<const char*>(fingerprint.data()), fingerprint.size()};
}

// True if none of these authorities belongs to another tenant; then adds them to `claimed`.
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

  bool has_files() const { return !file.empty() || !directory.empty(); }
  std::string PathOf(const std::string& tenant) const {
    return directory.empty() ? file : absl::StrCat(directory, "/", tenant);
  }

  // Updates `files`. The errors are about files that keep their former contents.
  std::vector<absl::Status> Read() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // The directory and the tenant's file are unchanged since they were read.
  bool IsCurrent(const std::string& tenant) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const auto found = files.find(tenant);
    return found != files.end() && found->second.stamp == StampOf(PathOf(tenant)) &&
           folder == StampOf(directory);
  }
  // Builds the list of keys from `files`.
  void Compose(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (now < good_until) return;
    std::vector<Key> composed;
    good_until = absl::InfiniteFuture();
    for (const auto& [tenant, file_of_tenant] : files) {
      for (const Key& key : file_of_tenant.keys) {
        if (key.until <= now) continue;
        good_until = std::min(good_until, key.until);
        composed.push_back(key);
      }
    }
    keys = std::make_shared<const TokenKeys>(std::move(composed));
  }
  void Tell(const std::vector<absl::Status>& errors) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::set<std::string> sentences;
    for (const absl::Status& error : errors) sentences.emplace(error.message());
    const std::set<std::string> before = std::exchange(told, std::move(sentences));
    if (!trouble) return;
    for (const std::string& sentence : told) {
      if (!before.contains(sentence)) trouble(sentence);
    }
  }

  // The paths; empty: the keys never change.
  std::string file;
  std::string directory;
  std::size_t most_tenants = 1;
  Trouble trouble;

  absl::Mutex mutex;
  std::map<std::string, File> files ABSL_GUARDED_BY(mutex);  // by tenant
  Keys keys ABSL_GUARDED_BY(mutex);
  // When the first of them expires.
  absl::Time good_until ABSL_GUARDED_BY(mutex) = absl::InfinitePast();
  FileStamp folder ABSL_GUARDED_BY(mutex);
  absl::Time look_after ABSL_GUARDED_BY(mutex) = absl::InfinitePast();
  // The problems last reported, so that each is reported once.
  std::set<std::string> told ABSL_GUARDED_BY(mutex);
};

std::vector<absl::Status> Keyring::State::Read() {
  look_after = absl::Now() + kLookPause;
  folder = StampOf(directory);
  std::vector<std::string> tenants = {""};
  if (!directory.empty()) {
    absl::StatusOr<std::vector<std::string>> names = TenantsIn(directory);
    if (!names.ok()) return {names.status()};
    tenants = *std::move(names);
  }
  std::vector<absl::Status> wrong;
  const auto unusable = [&](const std::string& tenant, absl::string_view why) {
    wrong.push_back(base::Failure(absl::StatusCode::kFailedPrecondition, kReadDirectory, directory,
                                  absl::StrCat("'", tenant, "' ", why)));
  };
  std::map<std::string, File> now, fresh;
  std::set<std::string> claimed;
  for (const std::string& tenant : tenants) {
    const std::string path = PathOf(tenant);
    const FileStamp stamp = StampOf(path);
    const auto before = files.find(tenant);
    if (before == files.end() || before->second.stamp != stamp) {
      const absl::StatusOr<TokenFile> tokens = ReadTokens(path);
      if (tokens.ok()) {
        fresh.emplace(tenant, File{stamp, KeysOf(tenant, *tokens)});
        continue;
      }
      wrong.push_back(tokens.status());
    }
    if (before != files.end() && Claim(before->second.keys, claimed)) now.insert(*before);
  }
  bool changed = false;
  // New files last, so that they cannot take a token away from its first owner.
  for (auto& [tenant, its] : fresh) {
    const bool is_new = files.find(tenant) == files.end();
    if (is_new && now.size() >= most_tenants) {
      unusable(tenant, absl::StrCat("is left out, as there are ", most_tenants,
                                    " tenants, which is the limit"));
      continue;
    }
    if (Claim(its.keys, claimed)) {
      now.emplace(tenant, std::move(its));
      changed = true;
      continue;
    }
    unusable(tenant, "has the same token as another tenant, so the two could not be told apart");
    const auto before = files.find(tenant);
    if (before != files.end() && Claim(before->second.keys, claimed)) now.insert(*before);
  }
  if (changed || now.size() != files.size()) {
    files = std::move(now);
    good_until = absl::InfinitePast();
  }
  return wrong;
}

TokenKeys::TokenKeys(std::vector<Key> keys) : keys_(std::move(keys)) {
  if (keys_.size() <= kFewKeys) return;
  for (const Key& key : keys_) {
    by_name_.emplace(key.authority.name(), &key);
    by_fingerprint_.emplace(AsText(key.fingerprint), &key);
  }
}

const Key* TokenKeys::Named(absl::string_view authority) const {
  if (keys_.size() > kFewKeys) {
    const auto found = by_name_.find(authority);
    return found == by_name_.end() ? nullptr : found->second;
  }
  const auto found = std::find_if(keys_.begin(), keys_.end(), [authority](const Key& key) {
    return key.authority.name() == authority;
  });
  return found == keys_.end() ? nullptr : &*found;
}

const Key* TokenKeys::Of(const Fingerprint& fingerprint) const {
  if (keys_.size() > kFewKeys) {
    const auto found = by_fingerprint_.find(AsText(fingerprint));
    return found == by_fingerprint_.end() ? nullptr : found->second;
  }
  const auto found = std::find_if(keys_.begin(), keys_.end(), [&fingerprint](const Key& key) {
    return key.fingerprint == fingerprint;
  });
  return found == keys_.end() ? nullptr : &*found;
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
    if (const auto errors = state->Read(); !errors.empty()) return errors.front();
  }
  return Keyring(std::move(state));
}

absl::StatusOr<Keyring> Keyring::OfDirectory(std::string path, Trouble trouble,
                                             std::size_t most_tenants) {
  auto state = std::make_shared<State>();
  state->directory = std::move(path);
  state->most_tenants = most_tenants;
  state->trouble = std::move(trouble);
  {
    const absl::MutexLock lock(&state->mutex);
    const std::vector<absl::Status> errors = state->Read();
    if (state->files.empty() && !errors.empty()) return errors.front();
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
  if (state_->has_files()) state_->Tell(state_->Read());
  state_->Compose(absl::Now());
  return state_->keys;
}

Keys Keyring::NowOf(const std::string& tenant) const {
  const absl::MutexLock lock(&state_->mutex);
  const absl::Time now = absl::Now();
  if (state_->has_files() && (now >= state_->look_after || !state_->IsCurrent(tenant))) {
    state_->Tell(state_->Read());
  }
  state_->Compose(now);
  return state_->keys;
}

Keys Keyring::Known() const {
  const absl::MutexLock lock(&state_->mutex);
  state_->Compose(absl::Now());
  return state_->keys;
}

std::optional<Principal> Keyring::Identify(const TokenKeys& keys, absl::string_view pem) {
  const ShownCertificate certificate(pem);
  const Key* const key = keys.Named(certificate.issuer());
  if (key == nullptr) return std::nullopt;
  const std::optional<Role> role = key->authority.RoleOf(certificate);
  if (!role) return std::nullopt;
  return Principal{key->tenant, key->metrics ? Role::kMetrics : *role};
}

std::optional<Principal> Keyring::Identify(const TokenKeys& keys, const Token& token) {
  // Anyone can guess tokens, so this must cost the loop next to nothing.
  const Key* const key = keys.Of(token.Fingerprint());
  if (key == nullptr) return std::nullopt;
  return Principal{key->tenant, key->metrics ? Role::kMetrics : Role::kTool};
}

}  // namespace muster::rendezvous
