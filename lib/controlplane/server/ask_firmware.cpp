// SPDX-License-Identifier: BSD-3-Clause
#include "ethdev/drivers.hpp"
#include "server/asks.hpp"
#include "server/nics.hpp"
#include "text/number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <compare>
#include <optional>

namespace weir::server {
namespace {

/// Of Mellanox's firmware: the first number is that of the family.
struct Version {
  unsigned family = 0;
  unsigned major = 0;
  unsigned minor = 0;

  auto operator<=>(const Version&) const = default;
};

/// The least that DPDK 22.11's driver wants (its page "NVIDIA MLX5 Common Driver").
constexpr std::array kLeast{
    Version{12, 21, 1000}, Version{14, 21, 1000}, Version{16, 21, 1000},
    Version{18, 25, 1010}, Version{20, 27, 90},   Version{22, 27, 90},
    Version{24, 28, 1002}, Version{26, 27, 90},   Version{28, 33, 2028},
};

/// Of "22.35.1012".
std::optional<Version> version_in(const std::string& text) {
  const std::size_t first = text.find('.');
  const std::size_t second = text.find('.', first + 1);
  if (first == std::string::npos || second == std::string::npos) {
    return std::nullopt;
  }
  const auto family = text::parsed<unsigned>(std::string_view(text).substr(0, first));
  const auto major =
      text::parsed<unsigned>(std::string_view(text).substr(first + 1, second - first - 1));
  const auto minor = text::parsed<unsigned>(std::string_view(text).substr(second + 1));
  if (!family || !major || !minor) {
    return std::nullopt;
  }
  return Version{*family, *major, *minor};
}

Finding mellanox_firmware(const Device& device) {
  const std::string what = fmt::format("port {}: firmware {}", device.port, device.firmware);
  const auto version = version_in(device.firmware);
  const auto* const least =
      version ? std::ranges::find(kLeast, version->family, &Version::family) : kLeast.end();
  if (least == kLeast.end()) {
    return {Rank::unknown,
            fmt::format("port {}: {}, of which DPDK's page says nothing", device.port,
                        device.firmware.empty() ? "no firmware is told" : what)};
  }
  if (*version < *least) {
    return {Rank::warning,
            fmt::format("{}; DPDK wants {}.{}.{:04} or later", what, least->family, least->major,
                        least->minor),
            fmt::format("mlxfwmanager -d {} --online -u # the vendor's tool", device.address)};
  }
  return {Rank::fine, what};
}

/// The driver loads it into the NIC, and does not start without it.
Finding ice_package(const Case& given, const Device& device) {
  if (!given.facts.ice_package.empty()) {
    return {Rank::fine, fmt::format("port {}: {}", device.port, given.facts.ice_package)};
  }
  const auto port = std::ranges::find(given.config.ports, device.port, &config::PortConfig::name);
  const bool is_safe = port != given.config.ports.end() &&
                       ethdev::argument_of(port->device, "safe-mode-support") == "1";
  return {is_safe ? Rank::warning : Rank::wrong,
          fmt::format("port {}: no ice.pkg in /lib/firmware/intel/ice/ddp{}", device.port,
                      is_safe ? "; the NIC has one queue without it" : ""),
          "apt install firmware-misc-nonfree"};
}

Finding firmware_of(const Case& given, const Device& device) {
  if (is_mellanox(device)) {
    return mellanox_firmware(device);
  }
  if (is_ice(device)) {
    return ice_package(given, device);
  }
  return {Rank::unknown, fmt::format("port {}: not told before the start", device.port)};
}

} // namespace

std::vector<Finding> ask_firmware(const Case& given) {
  return of_those_there(given, [&](const Device& device) { return firmware_of(given, device); });
}

} // namespace weir::server
