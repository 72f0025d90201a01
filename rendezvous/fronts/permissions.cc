#include "rendezvous/fronts/permissions.h"

#include <optional>
#include <utility>
#include <vector>

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>
#include <grpcpp/server_context.h>
#include <openssl/sha.h>
#include <spdlog/spdlog.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "rendezvous/net/peer.h"

namespace muster::rendezvous {
namespace {

constexpr std::chrono::minutes kOnceIn(1);
constexpr std::size_t kMostAddresses = 1024;
constexpr char kOthers[] = "many addresses";

// Certificates that are remembered, half of them at least, at 150 bytes each. A connection of an
// agent or a tool has one of its own, and most make a single call.
constexpr std::size_t kMostKnown = 2 * 1024;

// What a certificate is known by.
std::string HashOf(const std::string& certificate) {
  std::string hash(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(certificate.data()), certificate.size(),
         reinterpret_cast<unsigned char*>(hash.data()));
  return hash;
}

std::string CertificateOf(const grpc::CallbackServerContext& call) {
  const std::vector<grpc::string_ref> values =
      call.auth_context()->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  return values.empty() ? "" : std::string(values[0].data(), values[0].size());
}

std::string Called(Role role) {
  return role == Role::kAgent ? "an agent" : absl::StrCat("one of the role ", NameOf(role));
}

}  // namespace

void RateLimitedLog::Add(const std::string& address, const std::string& what, TimePoint now) {
  ++total_;
  auto line = lines_.find(address);
  // Once in a while: a flood must not cost more than it does.
  if (line == lines_.end() && lines_.size() >= kMostAddresses && now - swept_ >= kOnceIn) {
    swept_ = now;
    std::erase_if(lines_, [now](const auto& each) { return now - each.second.said >= kOnceIn; });
  }
  if (line == lines_.end()) {
    const std::string& name = lines_.size() < kMostAddresses ? address : kOthers;
    line = lines_.try_emplace(name, Line{now - kOnceIn}).first;
  }
  if (now - line->second.said < kOnceIn) {
    ++line->second.unsaid;
    return;
  }
  const std::uint64_t unsaid = std::exchange(line->second, Line{now}).unsaid;
  log_(absl::StrCat(
      line->first, " ", what,
      unsaid == 0 ? "" : absl::StrCat("; ", unsaid, " more refusals since its last line")));
}

Authenticator::Authenticator(Credentials credentials)
    : credentials_(std::move(credentials)),
      rate_limited_log_([](const std::string& line) { spdlog::warn("{}", line); }) {}

absl::StatusOr<std::string> Authenticator::Admit(Rpc rpc, const grpc::CallbackServerContext& call) {
  // Where callers have certificates of a site's, whoever has one has all rights.
  if (credentials_.proof() != Credentials::Proof::kToken) return "";
  const Principal* const caller = Identify(CertificateOf(call));
  if (caller != nullptr && IsAllowed(caller->role, rpc)) return caller->tenant;
  const std::string why = caller == nullptr
                              ? "has a token that is no longer valid"
                              : absl::StrCat("is ", Called(caller->role), " and may not call ",
                                             std::string(PermissionFor(rpc).method));
  Complain(call, why);
  return absl::PermissionDeniedError(absl::StrCat("this client ", why));
}

absl::StatusOr<std::string> Authenticator::AdmitAgain(Rpc rpc,
                                                      const grpc::CallbackServerContext& call) {
  if (credentials_.proof() == Credentials::Proof::kToken) {
    const Principal* const caller = Identify(CertificateOf(call));
    if (caller != nullptr) credentials_.RereadKeysOf(caller->tenant);
  }
  return Admit(rpc, call);
}

std::string Authenticator::TenantOf(const grpc::CallbackServerContext& call) {
  if (credentials_.proof() != Credentials::Proof::kToken) return "";
  const Principal* const caller = Identify(CertificateOf(call));
  return caller == nullptr ? "" : caller->tenant;
}

void Authenticator::Complain(const grpc::CallbackServerContext& call, const std::string& what) {
  Refused(ParsePeer(call.peer()).address, what);
}

void Authenticator::TurnedAway(const std::string& address) {
  if (!credentials_.secure()) return;
  const bool site = credentials_.proof() == Credentials::Proof::kSite;
  Refused(address, site ? "started TLS but made no call: its certificate may be missing, "
                          "expired or from another authority"
                        : "started TLS but made no call: it may have another token, or none");
}

void Authenticator::TooManyCalls(const std::string& address, std::uint64_t refused) {
  Refused(address,
          absl::StrCat("has too many calls under way, of which ", refused, " were refused"));
}

void Authenticator::HiddenCalls(const std::string& address, std::uint64_t calls) {
  Refused(address,
          absl::StrCat(
              "has made ", calls,
              " calls that gRPC refuses (without a method, say), and its connection was closed"));
}

const Principal* Authenticator::Identify(const std::string& certificate) {
  Keys keys = credentials_.keys();
  if (keys != keys_) {
    known_.clear();
    known_before_.clear();
  }
  keys_ = std::move(keys);
  std::string hash = HashOf(certificate);
  const auto found = known_.find(hash);
  if (found != known_.end()) return &found->second;
  const auto before = known_before_.find(hash);
  std::optional<Principal> principal;
  if (before != known_before_.end()) {
    principal = before->second;
  } else {
    principal = Keyring::Identify(*keys_, certificate);
  }
  if (!principal) return nullptr;
  if (known_.size() >= kMostKnown / 2) known_before_ = std::exchange(known_, {});
  return &known_.emplace(std::move(hash), *std::move(principal)).first->second;
}

}  // namespace muster::rendezvous
