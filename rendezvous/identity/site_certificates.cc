#include "rendezvous/identity/site_certificates.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <utility>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/failure.h"
#include "base/safe_path.h"
#include "base/unique_fd.h"
#include "rendezvous/identity/token.h"

namespace muster::rendezvous {
namespace {

using StackPtr = std::unique_ptr<STACK_OF(X509), OpensslFreer<[](STACK_OF(X509) * stack) {
                                   sk_X509_pop_free(stack, X509_free);
                                 }>>;

BioPtr Reader(const std::string& text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string Day(const ASN1_TIME* time) {
  tm date = {};
  if (ASN1_TIME_to_tm(time, &date) != 1) return "an unknown date";
  return absl::FormatTime("%Y-%m-%d %H:%M UTC", absl::FromTM(date, absl::UTCTimeZone()),
                          absl::UTCTimeZone());
}

// TLS requires this at both ends with Debian's OpenSSL: 112 bits of security, which is RSA of 2,048
// bits, and no signature with MD5 or SHA-1 (man 3 SSL_CTX_set_security_level).
constexpr int kSecurityLevel = 2;

const char* NameOf(CertificateUse use) {
  return use == CertificateUse::kServer ? "server" : "client";
}

// Explains OpenSSL's `error` about `certificate`; `whose` begins a sentence about it.
std::string Reason(int error, X509* certificate, CertificateUse use, const std::string& ca,
                   const std::string& whose) {
  switch (error) {
    case X509_V_ERR_INVALID_PURPOSE:
      return absl::StrCat(
          whose, " is not a ", NameOf(use),
          " certificate: its key usage must include digitalSignature and its extended key usage ",
          NameOf(use), "Auth, if present; have a matching one issued");
    case X509_V_ERR_EE_KEY_TOO_SMALL:
    case X509_V_ERR_CA_KEY_TOO_SMALL:
      return absl::StrCat(whose, " has a key of ", EVP_PKEY_get_bits(X509_get0_pubkey(certificate)),
                          " bits, which is too weak for TLS; have one issued with RSA of 2048 bits "
                          "or more, or with an elliptic curve");
    case X509_V_ERR_CA_MD_TOO_WEAK:
      return absl::StrCat(whose,
                          " is signed with a hash that is too weak for TLS; have one issued "
                          "that is signed with SHA-256");
    default:
      return absl::StrCat("no authority in ", ca, " has issued it (",
                          X509_verify_cert_error_string(error), ")");
  }
}

struct Verdict {
  int error = X509_V_OK;
  std::string problem;
};

// Why the other end would reject the first of `chain`, given no more than these authorities.
Verdict Judge(const std::vector<CertificatePtr>& chain,
              const std::vector<CertificatePtr>& authorities, CertificateUse use,
              const std::string& ca, unsigned long flags = 0) {
  const std::unique_ptr<X509_STORE, OpensslFreer<X509_STORE_free>> store(X509_STORE_new());
  for (const CertificatePtr& each : authorities) X509_STORE_add_cert(store.get(), each.get());
  const StackPtr between(sk_X509_new_null());
  for (std::size_t i = 1; i < chain.size(); ++i) {
    X509_up_ref(chain[i].get());
    sk_X509_push(between.get(), chain[i].get());
  }
  const std::unique_ptr<X509_STORE_CTX, OpensslFreer<X509_STORE_CTX_free>> context(
      X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), store.get(), chain.front().get(), between.get());
  X509_STORE_CTX_set_default(context.get(),
                             use == CertificateUse::kServer ? "ssl_server" : "ssl_client");
  X509_VERIFY_PARAM_set_auth_level(X509_STORE_CTX_get0_param(context.get()), kSecurityLevel);
  X509_STORE_CTX_set_flags(context.get(), flags);
  const bool good = X509_verify_cert(context.get()) == 1;
  // For TLS before 1.3 OpenSSL accepts a key usage of key exchange only; here each end signs.
  if (good && (X509_get_key_usage(chain.front().get()) & KU_DIGITAL_SIGNATURE) == 0) {
    return {X509_V_ERR_INVALID_PURPOSE,
            Reason(X509_V_ERR_INVALID_PURPOSE, chain.front().get(), use, ca, "it")};
  }
  const int error = X509_STORE_CTX_get_error(context.get());
  const bool is_own = X509_STORE_CTX_get_error_depth(context.get()) == 0;
  X509* const found = X509_STORE_CTX_get_current_cert(context.get());
  ERR_clear_error();
  if (good) return {};
  return {error, Reason(error, found != nullptr ? found : chain.front().get(), use, ca,
                        is_own ? "it" : "an authority that issued it")};
}

bool IsOfUnknownAuthority(int error) {
  return error == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT ||
         error == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY ||
         error == X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE ||
         error == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT ||
         error == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN;
}

}  // namespace

std::vector<CertificatePtr> CertificatesIn(const std::string& pem) {
  const BioPtr reader = Reader(pem);
  std::vector<CertificatePtr> found;
  while (X509* const next = PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr)) {
    found.emplace_back(next);
  }
  ERR_clear_error();
  return found;
}

KeyPtr PrivateKeyIn(const std::string& pem) {
  // OpenSSL would ask for a password on the terminal.
  KeyPtr key(PEM_read_bio_PrivateKey(
      Reader(pem).get(), nullptr, [](char*, int, int, void*) { return -1; }, nullptr));
  ERR_clear_error();
  return key;
}

bool IsKeyOf(const X509& certificate, const EVP_PKEY& key) {
  const bool fits = X509_check_private_key(&certificate, &key) == 1;
  ERR_clear_error();
  return fits;
}

std::string DateProblem(const X509& certificate) {
  const ASN1_TIME* const from = X509_get0_notBefore(&certificate);
  const ASN1_TIME* const to = X509_get0_notAfter(&certificate);
  if (X509_cmp_current_time(to) <= 0) return absl::StrCat("it has expired, on ", Day(to));
  if (X509_cmp_current_time(from) >= 0) return absl::StrCat("it is not valid before ", Day(from));
  return "";
}

std::string ProblemAnywhere(const std::vector<CertificatePtr>& chain,
                            const std::vector<CertificatePtr>& authorities, CertificateUse use,
                            const std::string& ca) {
  const Verdict verdict = Judge(chain, authorities, use, ca);
  if (!IsOfUnknownAuthority(verdict.error)) return verdict.problem;
  // Every certificate in the chain counts as trusted.
  return Judge(chain, chain, use, ca, X509_V_FLAG_PARTIAL_CHAIN).problem;
}

namespace {

constexpr char kReadCertificate[] = "read TLS certificate";
constexpr char kReadAuthority[] = "read TLS authority";
constexpr char kReadKey[] = "read TLS key";

absl::Status Unfit(const char* what, const std::string& path, absl::string_view why) {
  return base::Failure(absl::StatusCode::kFailedPrecondition, what, path, why);
}

// Reads a file of up to 1 MiB. `of_others`: whether others may be able to read it.
absl::StatusOr<std::string> ReadAll(const char* what, const std::string& path, bool of_others) {
  const auto failure = [&] {
    return base::SystemFailure(absl::StatusCode::kFailedPrecondition, what, path, errno);
  };
  // Does not block, as it may be a FIFO.
  const absl::StatusOr<base::UniqueFd> fd = base::OpenFile(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!fd.ok()) return Unfit(what, path, fd.status().message());
  struct stat file = {};
  if (::fstat(fd->get(), &file) != 0) return failure();
  if (!S_ISREG(file.st_mode)) return Unfit(what, path, "it is not a regular file");
  if (!of_others &&
      ((file.st_mode & 077) != 0 || (file.st_uid != ::geteuid() && file.st_uid != 0))) {
    return Unfit(what, path,
                 "other users can read or change it; it must be yours or root's, with mode 600");
  }
  constexpr std::size_t kMost = 1 << 20;
  std::string text(kMost, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(fd->get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failure();
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size == kMost) return Unfit(what, path, "it has more than 1 MiB");
  text.resize(size);
  return text;
}

// Why the certificates are not valid for one of the uses.
absl::Status Check(const std::vector<CertificatePtr>& chain,
                   const std::vector<CertificatePtr>& authorities,
                   const std::set<CertificateUse>& uses, const CertificateFiles& files) {
  for (const CertificateUse use : uses) {
    const std::string problem = Judge(chain, authorities, use, files.ca).problem;
    if (!problem.empty()) return Unfit(kReadCertificate, files.certificate, problem);
  }
  return absl::OkStatus();
}

}  // namespace

SiteCertificates::Pem::~Pem() {
  OPENSSL_cleanse(key.data(), key.size());
}

struct SiteCertificates::State {
  struct Stamps {
    FileStamp ca, certificate, key;
    bool operator==(const Stamps&) const = default;
  };

  absl::Status Read() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void Tell(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  CertificateFiles files;
  Trouble trouble;
  absl::Mutex mutex;
  std::set<CertificateUse> uses ABSL_GUARDED_BY(mutex);
  Stamps read ABSL_GUARDED_BY(mutex);
  std::shared_ptr<const Pem> pem ABSL_GUARDED_BY(mutex);
  CertificatePtr own ABSL_GUARDED_BY(mutex);
  std::string told ABSL_GUARDED_BY(mutex);
};

absl::Status SiteCertificates::State::Read() {
  const Stamps now = {StampOf(files.ca), StampOf(files.certificate), StampOf(files.key)};
  if (now == read) return absl::OkStatus();
  auto roots = ReadAll(kReadAuthority, files.ca, true);
  if (!roots.ok()) return roots.status();
  auto certificate = ReadAll(kReadCertificate, files.certificate, true);
  if (!certificate.ok()) return certificate.status();
  auto key = ReadAll(kReadKey, files.key, false);
  if (!key.ok()) return key.status();
  auto next = std::make_shared<Pem>();
  next->roots = *std::move(roots);
  next->certificate = *std::move(certificate);
  next->key = *std::move(key);

  const std::vector<CertificatePtr> authorities = CertificatesIn(next->roots);
  if (authorities.empty()) {
    return Unfit(kReadAuthority, files.ca, "it holds no PEM certificate");
  }
  std::vector<CertificatePtr> chain = CertificatesIn(next->certificate);
  if (chain.empty()) {
    return Unfit(kReadCertificate, files.certificate, "it holds no PEM certificate");
  }
  const KeyPtr private_key = PrivateKeyIn(next->key);
  if (private_key == nullptr) {
    return Unfit(kReadKey, files.key, "it holds no unencrypted PEM private key");
  }
  if (!IsKeyOf(*chain.front(), *private_key)) {
    return Unfit(kReadKey, files.key,
                 absl::StrCat("it is not the key of the certificate in ", files.certificate));
  }
  if (const std::string problem = DateProblem(*chain.front()); !problem.empty()) {
    return Unfit(kReadCertificate, files.certificate, problem);
  }
  if (absl::Status fit = Check(chain, authorities, uses, files); !fit.ok()) return fit;
  read = now;
  pem = std::move(next);
  own = std::move(chain.front());
  return absl::OkStatus();
}

void SiteCertificates::State::Tell(const absl::Status& status) {
  const std::string sentence(status.message());
  if (std::exchange(told, sentence) == sentence || sentence.empty() || !trouble) return;
  trouble(sentence);
}

absl::StatusOr<SiteCertificates> SiteCertificates::Load(CertificateFiles files, Trouble trouble,
                                                        CertificateUse use) {
  auto state = std::make_shared<State>();
  state->files = std::move(files);
  state->trouble = std::move(trouble);
  {
    const absl::MutexLock lock(&state->mutex);
    state->uses = {use};
    if (absl::Status status = state->Read(); !status.ok()) return status;
  }
  return SiteCertificates(std::move(state));
}

absl::Status SiteCertificates::UseFor(CertificateUse use) const {
  const absl::MutexLock lock(&state_->mutex);
  const absl::Status fit = Check(CertificatesIn(state_->pem->certificate),
                                 CertificatesIn(state_->pem->roots), {use}, state_->files);
  if (fit.ok()) state_->uses.insert(use);
  return fit;
}

std::shared_ptr<const SiteCertificates::Pem> SiteCertificates::Now() const {
  const absl::MutexLock lock(&state_->mutex);
  absl::Status status = state_->Read();
  if (const std::string problem = DateProblem(*state_->own); status.ok() && !problem.empty()) {
    status = Unfit(kReadCertificate, state_->files.certificate, problem);
  }
  state_->Tell(status);
  return state_->pem;
}

}  // namespace muster::rendezvous
