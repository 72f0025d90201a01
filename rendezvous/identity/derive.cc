#include "rendezvous/identity/derive.h"

#include <cstdlib>
#include <memory>
#include <string>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

namespace muster::rendezvous {

std::array<unsigned char, 32> Derive(const std::array<unsigned char, 32>& secret,
                                     absl::string_view label) {
  const std::unique_ptr<EVP_KDF, void (*)(EVP_KDF*)> kdf(
      EVP_KDF_fetch(nullptr, OSSL_KDF_NAME_HKDF, nullptr), &EVP_KDF_free);
  const std::unique_ptr<EVP_KDF_CTX, void (*)(EVP_KDF_CTX*)> context(EVP_KDF_CTX_new(kdf.get()),
                                                                     &EVP_KDF_CTX_free);
  char digest[] = "SHA256";
  std::array<unsigned char, 32> key = secret;
  std::string info(label);
  const std::array<OSSL_PARAM, 4> parameters = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, key.data(), key.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info.data(), info.size()),
      OSSL_PARAM_construct_end()};
  std::array<unsigned char, 32> derived;
  // OpenSSL fails here only when there is no memory.
  if (context == nullptr ||
      EVP_KDF_derive(context.get(), derived.data(), derived.size(), parameters.data()) != 1) {
    std::abort();
  }
  OPENSSL_cleanse(key.data(), key.size());
  return derived;
}

}  // namespace muster::rendezvous
