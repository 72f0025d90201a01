// The tokens that a process accepts, according to their files.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rendezvous/identity/authority.h"
#include "rendezvous/identity/token.h"

namespace muster::rendezvous {

// One accepted authority, and the tenant of its certificates.
struct Key {
  std::string tenant;  // empty: there is only one user
  Authority authority;
  // A metrics token: its holders have the role kMetrics, whatever they claim.
  bool metrics = false;
  // A former token is accepted until then.
  absl::Time until = absl::InfiniteFuture();
  // Token::Fingerprint.
  std::array<unsigned char, Token::kBytes> fingerprint{};
};

// An authenticated caller.
struct Principal {
  std::string tenant;
  Role role;

  bool operator==(const Principal&) const = default;
};

// All keys valid at one time, in order of tenant name. Thread-safe.
class TokenKeys {
 public:
  explicit TokenKeys(std::vector<Key> keys);
  TokenKeys(const TokenKeys&) = delete;
  TokenKeys& operator=(const TokenKeys&) = delete;

  bool empty() const { return keys_.empty(); }
  std::size_t size() const { return keys_.size(); }
  const Key& front() const { return keys_.front(); }
  std::vector<Key>::const_iterator begin() const { return keys_.begin(); }
  std::vector<Key>::const_iterator end() const { return keys_.end(); }

  // By Authority::name(), or by Token::Fingerprint; null: not found. Constant time.
  const Key* Named(absl::string_view authority) const;
  const Key* Of(const std::array<unsigned char, Token::kBytes>& fingerprint) const;

 private:
  const std::vector<Key> keys_;
  // Only for many keys: an authority's name has to be derived first.
  absl::flat_hash_map<absl::string_view, const Key*> by_name_;
  absl::flat_hash_map<absl::string_view, const Key*> by_fingerprint_;
};

using Keys = std::shared_ptr<const TokenKeys>;

// Copies share their state. Methods may be called on any thread; those that look at files may wait
// for a disk.
//
// Each token counts twice: with all rights, and as the metrics token derived from it
// (Token::ForMetrics).
class Keyring {
 public:
  // Called with one sentence, once, for each file that becomes unusable while the process runs; its
  // former contents stay valid, and other files come and go. Any thread.
  using Trouble = std::function<void(const std::string& sentence)>;

  // A single token that does not change.
  static Keyring Of(const Token& token);
  // The token in a file, and its former one for as long as the file says. Errors as ReadTokens.
  static absl::StatusOr<Keyring> OfFile(std::string path, Trouble trouble = {});
  // One file per tenant, named after the tenant: 1 to 64 ASCII letters, digits, underscores and
  // hyphens, starting with a letter or a digit. Other names, and folders, are ignored. A file that
  // cannot be used (not a token file, another file's token, or more than `most_tenants`) excludes
  // only its own tenant, and is reported by the first Now(). FailedPrecondition, one sentence, if
  // the directory cannot be read or can be changed by others, or if no file in it can be used.
  static absl::StatusOr<Keyring> OfDirectory(
      std::string path, Trouble trouble = {},
      std::size_t most_tenants = std::numeric_limits<std::size_t>::max());

  // The keys valid now; reads changed files again. Returns the same object until something changes.
  // The first key is the one for proving one's own identity.
  Keys Now() const;
  // The same, for use at each connection or call of a tenant: looks at all files only if that
  // tenant's has changed, files have been added or removed, or a second has passed.
  Keys NowOf(const std::string& tenant) const;
  // The same without looking at files: the last result of Now, less expired keys.
  Keys Known() const;

  // The principal behind a connection's certificate, in PEM; nullopt: no valid token issued it.
  static std::optional<Principal> Identify(const TokenKeys& keys, absl::string_view pem);
  // The principal behind a token; the role is kTool unless it is a metrics token.
  static std::optional<Principal> Identify(const TokenKeys& keys, const Token& token);

 private:
  struct State;

  explicit Keyring(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace muster::rendezvous
