// Owning pointers to OpenSSL's objects.
#pragma once

#include <memory>

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509v3.h>

namespace muster::rendezvous {

template <auto kFree>
struct OpensslFreer {
  template <typename T>
  void operator()(T* thing) const {
    kFree(thing);
  }
};

using BioPtr = std::unique_ptr<BIO, OpensslFreer<BIO_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, OpensslFreer<EVP_PKEY_free>>;
using CertificatePtr = std::unique_ptr<X509, OpensslFreer<X509_free>>;

}  // namespace muster::rendezvous
