// SPDX-License-Identifier: BSD-3-Clause
#include "program/digest.hpp"

#include <fmt/format.h>

#include <memory>
#include <openssl/evp.h>
#include <stdexcept>

namespace weir::program {
namespace {

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

int value_of(char digit) {
  if (digit >= '0' && digit <= '9') {
    return digit - '0';
  }
  return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

} // namespace

Digest digest_of(std::string_view text, std::span<const std::byte> results) {
  const std::unique_ptr<EVP_MD_CTX, FreeContext> context(EVP_MD_CTX_new());
  Digest digest{};
  unsigned bytes = 0;
  // The text's length keeps text and results apart.
  const std::string head = fmt::format("weir-operator {} ", text.size());
  const bool is_made = context != nullptr &&
                       EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1 &&
                       EVP_DigestUpdate(context.get(), head.data(), head.size()) == 1 &&
                       EVP_DigestUpdate(context.get(), text.data(), text.size()) == 1 &&
                       EVP_DigestUpdate(context.get(), results.data(), results.size()) == 1 &&
                       EVP_DigestFinal_ex(context.get(), digest.data(), &bytes) == 1;
  if (!is_made || bytes != digest.size()) {
    throw std::runtime_error("SHA-256 failed in libcrypto");
  }
  return digest;
}

std::string to_string(const Digest& digest) {
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

std::optional<Digest> digest_from(std::string_view text) {
  Digest digest{};
  if (text.size() != 2 * digest.size()) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < digest.size(); ++i) {
    const int high = value_of(text[2 * i]);
    const int low = value_of(text[2 * i + 1]);
    if (high < 0 || low < 0) {
      return std::nullopt;
    }
    digest[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return digest;
}

} // namespace weir::program
