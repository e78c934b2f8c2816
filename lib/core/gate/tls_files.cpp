// SPDX-License-Identifier: BSD-3-Clause
#include "gate/tls_files.hpp"

#include "files/whole_file.hpp"

#include <fmt/format.h>

#include <memory>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <optional>
#include <string_view>

namespace weir::gate {
namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

struct TlsFile {
  std::string_view section;
  std::string_view key; // in the section
  const std::string& path;

  [[noreturn]] void fail(std::string_view found, std::string_view allowed) const {
    throw TlsFileError(
        fmt::format("{}.{}: found {}, {}; allowed: {}", section, key, path, found, allowed));
  }
};

std::string contents_of(const TlsFile& file) {
  const std::optional<std::string> text = files::read_pem(file.path);
  if (!text) {
    file.fail(files::kNoPem, "a PEM file");
  }
  return *text;
}

Bio reader_of(const std::string& text) {
  return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free};
}

/// Nobody is there to type a passphrase.
int no_passphrase(char*, int, int, void*) {
  return 0;
}

Certificate certificate_in(const TlsFile& file, const std::string& text) {
  Certificate certificate(PEM_read_bio_X509(reader_of(text).get(), nullptr, no_passphrase, nullptr),
                          &X509_free);
  if (!certificate) {
    file.fail("which has no certificate", "a certificate in PEM");
  }
  return certificate;
}

Key key_in(const TlsFile& file, const std::string& text) {
  Key key(PEM_read_bio_PrivateKey(reader_of(text).get(), nullptr, no_passphrase, nullptr),
          &EVP_PKEY_free);
  if (!key) {
    file.fail("which has no private key, or one with a passphrase",
              "a private key in PEM without a passphrase");
  }
  return key;
}

} // namespace

PemTexts read_tls_files(const TlsFiles& files, std::string_view section) {
  const TlsFile certificate{section, "certificate", files.certificate};
  const TlsFile key{section, "key", files.key};
  const TlsFile authority{section, "client_authority", files.client_authority};
  PemTexts texts{contents_of(certificate), contents_of(key), contents_of(authority)};
  certificate_in(authority, texts.client_authority);
  if (X509_check_private_key(certificate_in(certificate, texts.certificate).get(),
                             key_in(key, texts.key).get()) != 1) {
    key.fail("which is not the key of " + files.certificate, "the certificate's key");
  }
  return texts;
}

} // namespace weir::gate
