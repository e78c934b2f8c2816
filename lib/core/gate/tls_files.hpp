// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace weir::gate {

/// Files in PEM.
struct TlsFiles {
  std::string certificate; // the service's, and its chain
  std::string key;
  std::string client_authority; // who signs clients' certificates
};

/// One of them is not what it should be. what() has the key and the file.
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
/// listen, and refuse every client. The configuration names them in `section`. Throws TlsFileError.
PemTexts read_tls_files(const TlsFiles& files, std::string_view section);

} // namespace weir::gate
