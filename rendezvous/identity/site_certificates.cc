#include "rendezvous/identity/site_certificates.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <utility>
#include <vector>

#include <openssl/crypto.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/failure.h"
#include "base/safe_path.h"
#include "base/unique_fd.h"
#include "rendezvous/identity/certificate_check.h"
#include "rendezvous/identity/openssl_ptr.h"
#include "rendezvous/identity/token.h"

namespace muster::rendezvous {
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

  // Why the certificates are not valid for one of the uses.
  static absl::Status Check(const std::vector<CertificatePtr>& chain,
                            const std::vector<CertificatePtr>& authorities,
                            const std::set<CertificateUse>& uses, const CertificateFiles& files);

  CertificateFiles files;
  Trouble trouble;
  absl::Mutex mutex;
  std::set<CertificateUse> uses ABSL_GUARDED_BY(mutex);
  Stamps read ABSL_GUARDED_BY(mutex);
  std::shared_ptr<const Pem> pem ABSL_GUARDED_BY(mutex);
  CertificatePtr own ABSL_GUARDED_BY(mutex);
  std::string told ABSL_GUARDED_BY(mutex);
};

absl::Status SiteCertificates::State::Check(const std::vector<CertificatePtr>& chain,
                                            const std::vector<CertificatePtr>& authorities,
                                            const std::set<CertificateUse>& uses,
                                            const CertificateFiles& files) {
  for (const CertificateUse use : uses) {
    const std::string problem = ChainProblem(chain, authorities, use, files.ca);
    if (!problem.empty()) return Unfit(kReadCertificate, files.certificate, problem);
  }
  return absl::OkStatus();
}

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
  const absl::Status fit = State::Check(CertificatesIn(state_->pem->certificate),
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
