// SPDX-License-Identifier: BSD-3-Clause
#include "files/trusted_folder.hpp"
#include "server/readers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sstream>
#include <unistd.h>

namespace weir::server {
namespace {

/// Lines of /proc/net/unix end in the socket's path; those that listen have __SO_ACCEPTCON.
bool has_listener(const Tree& tree, const std::string& path) {
  std::istringstream lines(tree.text("/proc/net/unix"));
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with(" " + path) && line.find(" 00010000 ") != std::string::npos) {
      return true;
    }
  }
  return false;
}

/// Where the file names none, the service's is in its own folder. A switch that is started by hand
/// makes one.
std::vector<std::string> paths_of(const config::ControlConfig& control) {
  const char* const folders = std::getenv("RUNTIME_DIRECTORY");
  if (!control.is_default || folders == nullptr) {
    return control.local;
  }
  const std::string list(folders);
  return {list.substr(0, list.find(':')) + "/control.sock"};
}

SocketPlace read_socket(const Tree& tree, const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const std::filesystem::path place = tree.at(folder);
  return {.path = path,
          .has_folder = std::filesystem::is_directory(place),
          .may_write = access(place.c_str(), W_OK | X_OK) == 0,
          .flaw = files::why_not_trusted(place),
          .has_listener = has_listener(tree, path)};
}

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

PemFile read_pem_file(const Tree& tree, const std::string& key, const std::string& path) {
  const std::string text = tree.text(path);
  PemFile file{.key = "control.tls." + key, .path = path, .is_readable = !text.empty()};
  const std::unique_ptr<BIO, decltype(&BIO_free)> reader(
      BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free);
  for (auto one = next_certificate(reader.get()); one; one = next_certificate(reader.get())) {
    if (const auto left = seconds_left(one.get())) {
      file.seconds_left = std::min(file.seconds_left.value_or(*left), *left);
    }
  }
  return file;
}

} // namespace

std::vector<SocketPlace> read_sockets(const Tree& tree, const config::ControlConfig& control) {
  std::vector<SocketPlace> places;
  for (const std::string& path : paths_of(control)) {
    places.push_back(read_socket(tree, path));
  }
  return places;
}

std::vector<PemFile> read_pem_files(const Tree& tree, const config::ControlConfig& control) {
  if (!control.tls) {
    return {};
  }
  return {read_pem_file(tree, "certificate", control.tls->certificate),
          read_pem_file(tree, "key", control.tls->key),
          read_pem_file(tree, "client_authority", control.tls->client_authority)};
}

} // namespace weir::server
