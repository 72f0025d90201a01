// The tokens that a process goes by, as their files say at present.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rendezvous/identity/authority.h"
#include "rendezvous/identity/token.h"

namespace muster::rendezvous {

// One authority whose certificates are taken, and for whom they speak.
struct Key {
  std::string tenant;  // empty: there is only one user
  Authority authority;
  // Its token was made to look and not to touch: its holders are kMetrics, whatever they say.
  bool metrics = false;
  // A former token is taken until then.
  absl::Time until = absl::InfiniteFuture();
  // Token::Fingerprint.
  std::array<unsigned char, Token::kBytes> fingerprint{};
};

// Who has proven that he is there.
struct Principal {
  std::string tenant;
  Role role;

  bool operator==(const Principal&) const = default;
};

using Keys = std::shared_ptr<const std::vector<Key>>;

// Copies share what they hold. Its methods may be called on any thread; those that look at files
// may wait for a disk.
//
// Each token counts twice: with all rights, and as the metrics token that follows from it
// (Token::ForMetrics).
class Keyring {
 public:
  // Told about files that cannot be used while the process runs, one sentence each; what was known
  // of such a file before goes on counting, and other files come and go. May be called on any
  // thread.
  using Trouble = std::function<void(const std::string& sentence)>;

  // One token that does not change.
  static Keyring Of(const Token& token);
  // That of a file, with the former one for as long as the file says. Errors as ReadTokens.
  static absl::StatusOr<Keyring> OfFile(std::string path, Trouble trouble = {});
  // One file for each tenant, whose name is the tenant's: 1 to 64 ASCII letters, digits,
  // underscores and hyphens, the first a letter or a digit. Others, and folders, are left out.
  // FailedPrecondition, one sentence, when the directory cannot be read or others could change it,
  // when a file in it is no token file or has another one's token, or when it has none.
  static absl::StatusOr<Keyring> OfDirectory(std::string path, Trouble trouble = {});
  // As OfDirectory, of a daemon that goes on after its death: a file that cannot be used leaves its
  // own tenant out, and is told with the first Now().
  static absl::StatusOr<Keyring> OfDirectoryAgain(std::string path, Trouble trouble = {});

  // The keys that count now: files that have changed are read again. The result is the same object
  // until something changes. The first is the one to prove oneself with.
  Keys Now() const;
  // The same without a look at files: what Now returned last, less what no longer counts.
  Keys Known() const;

  // Whose certificate this is, in PEM, that a connection was made with; nullopt: nobody's whose
  // token counts now.
  static std::optional<Principal> Identify(const std::vector<Key>& keys, absl::string_view pem);
  // Whose token this is; a tool of his, where it is not one that was made to look.
  static std::optional<Principal> Identify(const std::vector<Key>& keys, const Token& token);

 private:
  struct State;

  explicit Keyring(std::shared_ptr<State> state) : state_(std::move(state)) {}
  static absl::StatusOr<Keyring> OfDirectory(std::string path, Trouble trouble, bool again);

  std::shared_ptr<State> state_;
};

}  // namespace muster::rendezvous
