// SPDX-License-Identifier: BSD-3-Clause
#include "files/certificate_end.hpp"

#include <algorithm>
#include <memory>
#include <openssl/pem.h>
#include <openssl/x509.h>

namespace weir::files {
namespace {

using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

Certificate next_certificate(BIO* reader) {
  return {PEM_read_bio_X509(reader, nullptr, nullptr, nullptr), &X509_free};
}

std::optional<std::int64_t> seconds_left(const X509* certificate) {
  constexpr std::int64_t day = 86400;
  int days = 0;
  int seconds = 0;
  if (ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(certificate)) != 1) {
    return std::nullopt;
  }
  return days * day + seconds;
}

} // namespace

std::optional<std::int64_t> seconds_until_end(const std::string& pem) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> reader(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free);
  std::optional<std::int64_t> least;
  for (auto one = next_certificate(reader.get()); one; one = next_certificate(reader.get())) {
    if (const auto left = seconds_left(one.get())) {
      least = std::min(least.value_or(*left), *left);
    }
  }
  return least;
}

} // namespace weir::files
