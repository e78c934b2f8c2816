// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "config/config.hpp"

#include <stdexcept>
#include <string>

namespace weir::rpc {

/// A file of `control.tls` is not what it should be. what() has the key and the file.
class TlsFileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What the files have.
struct PemTexts {
  std::string certificate;
  std::string key;
  std::string client_authority;
};

/// Reads the files and checks that they are certificates and the key of the first one: gRPC would
/// listen, and refuse every client. Throws TlsFileError.
PemTexts read_tls_files(const config::TlsFiles& files);

} // namespace weir::rpc
