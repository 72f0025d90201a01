// Feeds arbitrary bytes to what reads token files and certificates, for libFuzzer (scripts/fuzz.sh)
// and for fuzz_seeds_test. The first byte chooses the reader.
//
// In addition to the sanitizers' checks: a token file that is read is written back as what is read
// again; and no certificate is taken that one of ours has not signed.
#include <cstdlib>
#include <string>
#include <string_view>

#include "rendezvous/identity/keyring.h"
#include "rendezvous/identity/token.h"
#include "test/fuzz/fuzz.h"

namespace muster::rendezvous {
namespace {

void ReadToken(std::string_view bytes) {
  const absl::StatusOr<TokenFile> file =
      TokenFile::Parse(absl::string_view(bytes.data(), bytes.size()));
  if (!file.ok()) return;
  const absl::StatusOr<TokenFile> again = TokenFile::Parse(file->Text());
  if (!again.ok() || again->token != file->token || again->former != file->former) std::abort();
}

void ReadCertificate(std::string_view bytes) {
  static const Keyring keyring = Keyring::Of(*Token::Parse(std::string(64, 'a')));
  static const Keys keys = keyring.Now();
  // The seeds are another token's: to be taken, a certificate has to be signed with a key that
  // nobody here has shown to the fuzzer.
  if (Keyring::Identify(*keys, absl::string_view(bytes.data(), bytes.size()))) std::abort();
}

}  // namespace
}  // namespace muster::rendezvous

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string own(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 0) {
    muster::rendezvous::ReadToken(own);
  } else {
    muster::rendezvous::ReadCertificate(own);
  }
  return 0;
}
