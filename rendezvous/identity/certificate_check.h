// Explains what is wrong with a certificate, before the other end rejects it without explanation.
#pragma once

#include <string>
#include <vector>

#include "rendezvous/identity/openssl_ptr.h"

namespace muster::rendezvous {

// The end that presents a certificate.
enum class CertificateUse { kServer, kClient };

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
// the file `ca`.
std::string ChainProblem(const std::vector<CertificatePtr>& chain,
                         const std::vector<CertificatePtr>& authorities, CertificateUse use,
                         const std::string& ca);
// As ChainProblem, if the other end may know more authorities: an unknown issuer is no problem, but
// its strength and purpose may be.
std::string ProblemAnywhere(const std::vector<CertificatePtr>& chain,
                            const std::vector<CertificatePtr>& authorities, CertificateUse use,
                            const std::string& ca);

}  // namespace muster::rendezvous
