// SPDX-License-Identifier: BSD-3-Clause
#include "gate/certificate.hpp"

#include <memory>
#include <openssl/pem.h>
#include <openssl/x509.h>

namespace weir::gate {
namespace {

/// A name that is no text is an empty one, which nobody has.
std::string utf8_of(const ASN1_STRING* name) {
  unsigned char* bytes = nullptr;
  const int length = ASN1_STRING_to_UTF8(&bytes, name);
  if (length < 0) {
    return {};
  }
  std::string text(bytes, bytes + length);
  OPENSSL_free(bytes);
  return text;
}

} // namespace

std::vector<std::string> common_names_in(const std::string& pem) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> reader(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(
      PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr), &X509_free);
  std::vector<std::string> names;
  if (!certificate) {
    return names;
  }
  const X509_NAME* const subject = X509_get_subject_name(certificate.get());
  for (int at = -1; (at = X509_NAME_get_index_by_NID(subject, NID_commonName, at)) >= 0;) {
    names.push_back(utf8_of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at))));
  }
  return names;
}

} // namespace weir::gate
