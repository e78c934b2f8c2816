// SPDX-License-Identifier: BSD-3-Clause
#include "host/base/host_addresses.hpp"

#include "host/base/error.hpp"
#include "host/base/interface_addresses.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <sys/socket.h>

namespace weir::host {
namespace {

/// By the address: a service's own address may be one of the loopback interface too.
bool is_loopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    constexpr std::uint32_t network = 127; // RFC 6890
    return ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr) >> 24 == network;
  }
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

std::string describe(const std::vector<std::string>& candidates, std::string_view family) {
  if (candidates.empty()) {
    return "no address that other hosts can use";
  }
  return fmt::format("{} {} addresses: {}", candidates.size(), family, fmt::join(candidates, ", "));
}

bool has(const std::vector<HostAddress>& addresses, const std::string& host,
         HostAddress::Reach reach) {
  return std::ranges::any_of(addresses, [&](const HostAddress& address) {
    return address.text == host && address.reach == reach;
  });
}

} // namespace

std::vector<HostAddress> read_host_addresses() {
  const InterfaceAddresses list = read_interface_addresses();
  std::vector<HostAddress> addresses;
  for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
    const socklen_t length = length_of(entry->ifa_addr);
    std::array<char, NI_MAXHOST> text{};
    if ((entry->ifa_flags & IFF_UP) == 0 || length == 0 ||
        getnameinfo(entry->ifa_addr, length, text.data(), text.size(), nullptr, 0,
                    NI_NUMERICHOST) != 0) {
      continue;
    }
    addresses.push_back(
        {text.data(),
         is_loopback(entry->ifa_addr) ? HostAddress::Reach::this_host : HostAddress::Reach::network,
         entry->ifa_name});
  }
  return addresses;
}

std::vector<std::string> announced(const std::vector<HostAddress>& addresses,
                                   const std::string& preferred) {
  const auto reaches_others = [](const HostAddress& address) {
    return address.reach == HostAddress::Reach::network;
  };
  const bool has_network = std::any_of(addresses.begin(), addresses.end(), reaches_others);
  std::vector<std::string> chosen;
  for (const HostAddress& address : addresses) {
    if (!has_network || reaches_others(address)) {
      chosen.push_back(address.text);
    }
  }
  std::stable_partition(chosen.begin(), chosen.end(),
                        [&](const std::string& address) { return address == preferred; });
  return chosen;
}

std::vector<std::string> announced(const std::vector<HostAddress>& addresses,
                                   const std::set<std::string>& met) {
  std::vector<std::string> of_networks;
  std::vector<std::string> link_local; // not among `addresses`: they mean something on one link
  for (const std::string& host : met) {
    if (has(addresses, host, HostAddress::Reach::network)) {
      of_networks.push_back(host);
    } else if (!has(addresses, host, HostAddress::Reach::this_host)) {
      link_local.push_back(host);
    }
  }
  if (of_networks.size() == met.size()) {
    return of_networks;
  }
  const bool has_network =
      std::ranges::count(addresses, HostAddress::Reach::network, &HostAddress::reach) != 0;
  return has_network || link_local.empty() ? announced(addresses, std::string()) : link_local;
}

bool are_of_this_host(const std::set<std::string>& met, const std::vector<HostAddress>& addresses) {
  return std::ranges::all_of(met, [&](const std::string& host) {
    return has(addresses, host, HostAddress::Reach::this_host);
  });
}

bool is_wildcard(std::string_view address) {
  return address == "0.0.0.0" || address == "::";
}

std::string own_address(const std::vector<HostAddress>& addresses, const std::string& interface) {
  std::vector<std::string> ipv4;
  std::vector<std::string> ipv6;
  for (const HostAddress& address : addresses) {
    if (address.interface == interface) {
      const bool is_ipv6 = address.text.find(':') != std::string::npos;
      (is_ipv6 ? ipv6 : ipv4).push_back(address.text);
    }
  }
  const std::vector<std::string>& candidates = ipv4.empty() ? ipv6 : ipv4;
  if (candidates.size() != 1) {
    throw Error(
        ErrorCode::transport_failure, std::nullopt,
        fmt::format("ip: not given, and interface {} has {}; allowed: the option ip, or one "
                    "address of the interface",
                    interface, describe(candidates, ipv4.empty() ? "IPv6" : "IPv4")));
  }
  return candidates.front();
}

} // namespace weir::host
