// Certificates of a site's own authority, in place of those that follow from a token.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace muster::rendezvous {

// Files in PEM (RFC 7468).
struct CertificateFiles {
  // The authorities whose word is taken for the other end.
  std::string ca;
  // What certifies this end, with what lies between it and the authority; and its private key.
  std::string certificate;
  std::string key;

  bool empty() const { return ca.empty() && certificate.empty() && key.empty(); }
  bool operator==(const CertificateFiles&) const = default;
};

// Copies share what they hold. Its methods may be called on any thread, and may wait for a disk.
class SiteCertificates {
 public:
  // Told, one sentence each, about files that cannot be used while the process runs, and of a
  // certificate that has expired; what was there before goes on counting. On any thread.
  using Trouble = std::function<void(const std::string& sentence)>;

  struct Pem {
    std::string roots;
    std::string certificate;
    std::string key;

    // Overwrites the key.
    ~Pem();
  };

  // FailedPrecondition, one sentence that names the file: it cannot be read; the key's can be read
  // by others, or belongs to another user than this one or root; it holds nothing of its kind; the
  // key is not the certificate's; the certificate has expired, is not valid yet, or is not signed
  // by one of the authorities.
  static absl::StatusOr<SiteCertificates> Load(CertificateFiles files, Trouble trouble = {});

  // What the files say at present: they are read again when they have changed. The result is the
  // same object until then.
  std::shared_ptr<const Pem> Now() const;

 private:
  struct State;

  explicit SiteCertificates(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

}  // namespace muster::rendezvous
