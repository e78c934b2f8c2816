// SPDX-License-Identifier: BSD-3-Clause
#include "host/base/frame_seal.hpp"

#include "host/base/control_note.hpp"
#include "wire/big_endian.hpp"

#include <memory>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdexcept>
#include <string>

namespace weir::host {
namespace {

struct FreeMac {
  void operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }
};

using Computation = std::unique_ptr<EVP_MAC_CTX, FreeMac>;

/// Never freed, and libcrypto is asked not to clean up when the process exits: a group may be
/// closed by a static destructor.
EVP_MAC* hmac() {
  static EVP_MAC* const algorithm = [] {
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
    return EVP_MAC_fetch(nullptr, "HMAC", nullptr);
  }();
  return algorithm;
}

Computation computation_with(ByteView key) {
  Computation computation(hmac() != nullptr ? EVP_MAC_CTX_new(hmac()) : nullptr);
  std::string digest = "SHA256";
  const std::array<OSSL_PARAM, 2> parameters{
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest.data(), 0),
      OSSL_PARAM_construct_end()};
  if (!computation ||
      EVP_MAC_init(computation.get(), key.data(), key.size(), parameters.data()) != 1) {
    throw std::runtime_error("libcrypto has no HMAC-SHA256, which a secret needs");
  }
  return computation;
}

} // namespace

Mac mac_of(ByteView key, std::initializer_list<ByteView> parts) {
  const Computation computation = computation_with(key);
  for (const ByteView part : parts) {
    EVP_MAC_update(computation.get(), part.data(), part.size());
  }
  Mac mac{};
  std::size_t length = 0;
  if (EVP_MAC_final(computation.get(), mac.data(), &length, mac.size()) != 1 ||
      length != mac.size()) {
    throw std::runtime_error("libcrypto failed to compute an HMAC-SHA256");
  }
  return mac;
}

bool is_same_mac(const Mac& due, ByteView found) {
  return found.size() == due.size() && CRYPTO_memcmp(due.data(), found.data(), due.size()) == 0;
}

Mac FrameSeal::next(ByteView header, ByteView body) {
  const wire::be64 number(frames_++);
  return mac_of(key_, {bytes_of(number), header, body});
}

} // namespace weir::host
