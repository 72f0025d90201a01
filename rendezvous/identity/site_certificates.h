// Certificates of a site's own authority, instead of those derived from a token.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rendezvous/identity/openssl_ptr.h"
#include "rendezvous/identity/token_source.h"

namespace muster::rendezvous {

// The end that presents a certificate.
enum class CertificateUse { kServer, kClient };

// Copies share their state. Methods may be called on any thread, and may wait for a disk.
class SiteCertificates {
 public:
  // Called with one sentence for each file that becomes unusable while the process runs, and for an
  // expired certificate; the former contents stay in use. Any thread.
  using Trouble = std::function<void(const std::string& sentence)>;

  struct Pem {
    std::string roots;
    std::string certificate;
    std::string key;

    // Overwrites the key.
    ~Pem();
  };

  // FailedPrecondition, one sentence that names the file: it cannot be read; the key's file is
  // readable by others, or belongs to a user other than this one or root; it holds nothing of its
  // kind; the key does not match the certificate; the certificate has expired, is not valid yet, is
  // not signed by one of the authorities, is not for this use, or is too weak for TLS (it, or an
  // intermediate): everything that the other end would reject without explanation.
  static absl::StatusOr<SiteCertificates> Load(CertificateFiles files, Trouble trouble = {},
                                               CertificateUse use = CertificateUse::kClient);

  // Also checks for this use from now on. FailedPrecondition, as Load: not valid for it.
  absl::Status UseFor(CertificateUse use) const;

  // The current contents; reads changed files again. Returns the same object until then.
  std::shared_ptr<const Pem> Now() const;

 private:
  struct State;

  explicit SiteCertificates(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

// Explains what is wrong with a certificate, before the other end rejects it without explanation.

// Parsing PEM (RFC 7468). Any thread; clears OpenSSL's errors.

// The certificates, in order; may be empty.
std::vector<CertificatePtr> CertificatesIn(const std::string& pem);
// Null: there is none, or it needs a password, which is not requested.
KeyPtr PrivateKeyIn(const std::string& pem);

bool IsKeyOf(const X509& certificate, const EVP_PKEY& key);

// Sentences about a certificate, called "it"; empty: nothing is wrong.

// It has expired or is not valid yet.
std::string DateProblem(const X509& certificate);
// The other end would reject the first of `chain` for this use, given the authorities, which are in
// the file `ca`, and others that it may know: an unknown issuer is no problem, but its strength and
// purpose may be.
std::string ProblemAnywhere(const std::vector<CertificatePtr>& chain,
                            const std::vector<CertificatePtr>& authorities, CertificateUse use,
                            const std::string& ca);

}  // namespace muster::rendezvous
