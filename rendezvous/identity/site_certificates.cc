#include "rendezvous/identity/site_certificates.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/failure.h"
#include "base/safe_path.h"
#include "base/unique_fd.h"
#include "rendezvous/identity/file_stamp.h"
#include "rendezvous/identity/openssl_ptr.h"

namespace muster::rendezvous {
namespace {

using StackPtr = std::unique_ptr<STACK_OF(X509), OpensslFreer<[](STACK_OF(X509) * stack) {
                                   sk_X509_pop_free(stack, X509_free);
                                 }>>;

constexpr char kReadCertificate[] = "read TLS certificate";
constexpr char kReadAuthority[] = "read TLS authority";
constexpr char kReadKey[] = "read TLS key";

absl::Status Unfit(const char* what, const std::string& path, absl::string_view why) {
  return base::Failure(absl::StatusCode::kFailedPrecondition, what, path, why);
}

// All of a file that may be 1 MiB. `of_others` says whether others may be able to read it.
absl::StatusOr<std::string> ReadAll(const char* what, const std::string& path, bool of_others) {
  const auto failure = [&] {
    return base::SystemFailure(absl::StatusCode::kFailedPrecondition, what, path, errno);
  };
  // Without waiting, as it may be a FIFO.
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

BioPtr Reader(const std::string& text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// The certificates of a file, in order.
std::vector<CertificatePtr> CertificatesIn(const std::string& pem) {
  const BioPtr reader = Reader(pem);
  std::vector<CertificatePtr> found;
  while (X509* const next = PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr)) {
    found.emplace_back(next);
  }
  ERR_clear_error();
  return found;
}

std::string Day(const ASN1_TIME* time) {
  tm date = {};
  if (ASN1_TIME_to_tm(time, &date) != 1) return "an unknown date";
  return absl::FormatTime("%Y-%m-%d %H:%M UTC", absl::FromTM(date, absl::UTCTimeZone()),
                          absl::UTCTimeZone());
}

// Why the certificate is not good now; empty: it is.
std::string DateProblem(X509* certificate) {
  const ASN1_TIME* const from = X509_get0_notBefore(certificate);
  const ASN1_TIME* const to = X509_get0_notAfter(certificate);
  if (X509_cmp_current_time(to) <= 0) return absl::StrCat("it has expired, on ", Day(to));
  if (X509_cmp_current_time(from) >= 0) return absl::StrCat("it is not valid before ", Day(from));
  return "";
}

// Why none of the authorities answers for the first of `chain`; empty: one does.
std::string ChainProblem(const std::vector<CertificatePtr>& chain,
                         const std::vector<CertificatePtr>& authorities) {
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
  const bool good = X509_verify_cert(context.get()) == 1;
  const int error = X509_STORE_CTX_get_error(context.get());
  ERR_clear_error();
  return good ? "" : X509_verify_cert_error_string(error);
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
    return Unfit(kReadAuthority, files.ca, "it holds no certificate in PEM");
  }
  std::vector<CertificatePtr> chain = CertificatesIn(next->certificate);
  if (chain.empty()) {
    return Unfit(kReadCertificate, files.certificate, "it holds no certificate in PEM");
  }
  const BioPtr reader = Reader(next->key);
  // A password that is asked for would be asked of the terminal.
  const KeyPtr private_key(PEM_read_bio_PrivateKey(
      reader.get(), nullptr, [](char*, int, int, void*) { return -1; }, nullptr));
  ERR_clear_error();
  if (private_key == nullptr) {
    return Unfit(kReadKey, files.key, "it holds no private key in PEM that needs no password");
  }
  if (X509_check_private_key(chain.front().get(), private_key.get()) != 1) {
    ERR_clear_error();
    return Unfit(kReadKey, files.key,
                 absl::StrCat("it is not the key of the certificate in ", files.certificate));
  }
  if (const std::string problem = DateProblem(chain.front().get()); !problem.empty()) {
    return Unfit(kReadCertificate, files.certificate, problem);
  }
  if (const std::string problem = ChainProblem(chain, authorities); !problem.empty()) {
    return Unfit(kReadCertificate, files.certificate,
                 absl::StrCat("no authority in ", files.ca, " answers for it (", problem, ")"));
  }
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

absl::StatusOr<SiteCertificates> SiteCertificates::Load(CertificateFiles files, Trouble trouble) {
  auto state = std::make_shared<State>();
  state->files = std::move(files);
  state->trouble = std::move(trouble);
  {
    const absl::MutexLock lock(&state->mutex);
    if (absl::Status status = state->Read(); !status.ok()) return status;
  }
  return SiteCertificates(std::move(state));
}

std::shared_ptr<const SiteCertificates::Pem> SiteCertificates::Now() const {
  const absl::MutexLock lock(&state_->mutex);
  absl::Status status = state_->Read();
  if (const std::string problem = DateProblem(state_->own.get()); status.ok() && !problem.empty()) {
    status = Unfit(kReadCertificate, state_->files.certificate, problem);
  }
  state_->Tell(status);
  return state_->pem;
}

}  // namespace muster::rendezvous
