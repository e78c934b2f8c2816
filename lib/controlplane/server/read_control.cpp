// SPDX-License-Identifier: BSD-3-Clause
#include "files/certificate_end.hpp"
#include "files/trusted_folder.hpp"
#include "server/readers.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
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

PemFile read_pem_file(const Tree& tree, const std::string& key, const std::string& path) {
  const std::string text = tree.text(path);
  return {.key = "control.tls." + key,
          .path = path,
          .is_readable = !text.empty(),
          .seconds_left = files::seconds_until_end(text)};
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
