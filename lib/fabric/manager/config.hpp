// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "jobs/site.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace weir::manager {

/// Files in PEM.
struct TlsFiles {
  std::string certificate; // the manager's, also for switches
  std::string key;
  std::string client_authority;
  std::string switch_authority;
};

/// An etcd: URLs of its members, and with https files in PEM.
struct EtcdFiles {
  std::vector<std::string> servers;
  std::string certificate;
  std::string key;
  std::string authority;
};

/// What the manager's file says (docs/fabric.md).
struct Config {
  std::string name;                // of this manager, for people
  std::vector<std::string> listen; // "unix:/PATH" or "ADDRESS:PORT"
  std::optional<TlsFiles> tls;     // there if an address of the network is
  std::string sqlite;              // the store's file; empty: it is etcd
  std::optional<EtcdFiles> etcd;
  std::vector<std::string> operators;
  std::vector<std::string> schedulers; // who may grant and end allocations, and nothing else
  std::string metrics;                 // "ADDRESS:PORT"; empty: none
  jobs::Site site;
};

/// Reads and checks the file and its topology. Throws yaml::Error, "FILE:LINE: KEY: found …;
/// allowed: …".
Config load_config(const std::filesystem::path& file);

} // namespace weir::manager
