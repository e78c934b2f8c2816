// SPDX-License-Identifier: BSD-3-Clause
#include "lab.hpp"

#include "coming_rings.hpp"
#include "ethdev/eal.hpp"

#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_errno.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <unistd.h>

namespace weir::load {
namespace {

constexpr std::array<std::string_view, 5> kRoleNames{"one-lcore", "two-lcores", "pipeline",
                                                     "two-pipelines", "helped"};
constexpr std::uint16_t kPorts = static_cast<std::uint16_t>(Place::count);
constexpr std::chrono::seconds kLinkTimeout{20};

/// By lcore; the first is the control lcore.
std::vector<std::string> roles_by_lcore(Roles roles) {
  switch (roles) {
  case Roles::one_lcore:
    return {"control", "rx, worker, tx"};
  case Roles::two_lcores:
    return {"control", "rx, tx", "worker"};
  case Roles::pipeline:
    return {"control", "rx", "worker", "tx"};
  case Roles::two_pipelines:
    return {"control", "rx", "worker", "tx", "rx", "worker", "tx"};
  case Roles::helped:
    return {"control", "rx, tx", "worker", "worker", "worker"}; // one more than rings
  }
  return {};
}

/// The switch and its other end use two names for one socket, because memif distinguishes servers
/// and clients in one process by the name.
std::string device(const std::filesystem::path& folder, std::uint16_t port, bool is_server) {
  return fmt::format("net_memif_{0}{1},role={2},id={1},socket={3}/{4}sock{1},socket-abstract=no",
                     is_server ? "switch" : "host", port, is_server ? "server" : "client",
                     folder.string(), is_server ? "" : "./");
}

std::string ring(std::uint32_t id, std::initializer_list<std::uint16_t> ports) {
  std::string text = fmt::format(
      "  - id: {}\n    window: {}\n    max_message_bytes: {}\n    mtu: {}\n    members:\n", id,
      kWindow, kMessageBytes, kPathMtu);
  for (const std::uint16_t port : ports) {
    text += fmt::format("      - {{ ip: {} }}\n", wire::to_string(ip_of(port)));
  }
  return text;
}

std::string configuration(Roles roles, const std::filesystem::path& folder) {
  std::string text = "ports:\n";
  for (std::uint16_t port = 0; port < kPorts; ++port) {
    text += fmt::format("  - {{ name: p{}, device: \"{}\" }}\n", port, device(folder, port, true));
  }
  text += "lcores:\n";
  const auto by_lcore = roles_by_lcore(roles);
  for (std::size_t lcore = 0; lcore < by_lcore.size(); ++lcore) {
    text += fmt::format("  - {{ id: {}, roles: [{}], idle: sleep }}\n", lcore, by_lcore[lcore]);
  }
  const auto noise = static_cast<std::uint16_t>(Place::noise);
  text += room_for_coming_rings() + fmt::format("state_directory: {}\n", folder.string());
  return text + "rings:\n" + ring(kRing, {0, 1, 2}) + ring(kIdleRing, {0, 1, noise});
}

/// "0@(0-1),1@(0-1),…"
std::string floating_lcores(Roles roles) {
  const unsigned last = std::max(1u, std::thread::hardware_concurrency()) - 1;
  std::string text;
  for (std::size_t lcore = 0; lcore < roles_by_lcore(roles).size(); ++lcore) {
    text += fmt::format("{}{}@(0-{})", lcore == 0 ? "" : ",", lcore, last);
  }
  return text;
}

} // namespace

std::string_view name_of(Roles roles) {
  return kRoleNames[static_cast<std::size_t>(roles)];
}

Roles roles_named(std::string_view name) {
  const auto found = std::find(kRoleNames.begin(), kRoleNames.end(), name);
  if (found == kRoleNames.end()) {
    throw std::invalid_argument(
        fmt::format("roles: found {}; allowed: {}", name, fmt::join(kRoleNames, ", ")));
  }
  return static_cast<Roles>(found - kRoleNames.begin());
}

wire::IpAddress ip_of(std::uint16_t port) {
  return wire::IpAddress::from_v4(
      std::array<std::uint8_t, 4>{10, 60, 0, static_cast<std::uint8_t>(port + 1)}.data());
}

wire::MacAddress mac_of(std::uint16_t port) {
  return {{0x02, 0x60, 0, 0, 0, static_cast<std::uint8_t>(port + 1)}};
}

Eal::Eal(Roles roles)
    : arguments_{"load_test",
                 "--no-huge",
                 "-m",
                 "1536",
                 "--no-pci",
                 "--no-telemetry",
                 "--log-level=*:4", // warnings and worse
                 fmt::format("--file-prefix=weir-load-{}", getpid()),
                 "--lcores",
                 floating_lcores(roles)} {
  std::vector<char*> argv;
  for (std::string& argument : arguments_) {
    argv.push_back(argument.data());
  }
  if (rte_eal_init(static_cast<int>(argv.size()), argv.data()) < 0) {
    throw std::runtime_error(fmt::format("EAL does not start with {}: {}",
                                         fmt::join(arguments_, " "), rte_strerror(rte_errno)));
  }
}

Eal::~Eal() {
  const std::string runtime = rte_eal_get_runtime_dir();
  ethdev::end_eal();
  std::error_code ignored;
  std::filesystem::remove_all(runtime, ignored);
}

Lab::Lab(Roles roles) : folder_("weir-load") {
  const std::filesystem::path file = folder_.path() / "weir.yaml";
  std::ofstream(file) << configuration(roles, folder_.path());
  weir_ = std::make_unique<control::Switch>(config::load_config(file));
  weir_->start();
}

std::unique_ptr<host::FrameIo> Lab::open(std::uint16_t port) const {
  return std::make_unique<host::EthdevIo>(device(folder_.path(), port, false), kLinkTimeout);
}

bool send(host::FrameIo& wire, std::span<const std::uint8_t> frame) {
  const std::span<std::uint8_t> room = wire.reserve(frame.size());
  if (room.empty()) {
    return false;
  }
  std::copy(frame.begin(), frame.end(), room.begin());
  wire.commit(frame.size());
  return true;
}

} // namespace weir::load
