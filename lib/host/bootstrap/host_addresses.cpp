// SPDX-License-Identifier: BSD-3-Clause
#include "host/bootstrap/host_addresses.hpp"

#include "host/bootstrap/error.hpp"

#include <fmt/format.h>

#include <algorithm>
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

struct FreeInterfaces {
  void operator()(ifaddrs* list) const { freeifaddrs(list); }
};

using Interfaces = std::unique_ptr<ifaddrs, FreeInterfaces>;

Interfaces read_interfaces() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    throw std::runtime_error(
        fmt::format("cannot read this host's addresses: {}", std::strerror(errno)));
  }
  return Interfaces(list);
}

/// Bytes of the socket address. 0 for one that another host cannot use.
socklen_t length_of(const sockaddr* address) {
  if (address == nullptr) {
    return 0;
  }
  if (address->sa_family == AF_INET) {
    return sizeof(sockaddr_in);
  }
  const bool is_ipv6 = address->sa_family == AF_INET6;
  return is_ipv6 &&
                 !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr)
             ? sizeof(sockaddr_in6)
             : 0;
}

std::string describe(const std::vector<std::string>& candidates, std::string_view family) {
  if (candidates.empty()) {
    return "no address that other hosts can use";
  }
  return fmt::format("{} {} addresses: {}", candidates.size(), family, fmt::join(candidates, ", "));
}

} // namespace

std::vector<HostAddress> read_host_addresses() {
  const Interfaces list = read_interfaces();
  std::vector<HostAddress> addresses;
  for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
    const socklen_t length = length_of(entry->ifa_addr);
    std::array<char, NI_MAXHOST> text{};
    if ((entry->ifa_flags & IFF_UP) == 0 || length == 0 ||
        getnameinfo(entry->ifa_addr, length, text.data(), text.size(), nullptr, 0,
                    NI_NUMERICHOST) != 0) {
      continue;
    }
    const bool is_loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
    addresses.push_back({text.data(),
                         is_loopback ? HostAddress::Reach::this_host : HostAddress::Reach::network,
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

namespace {

bool all_have(HostAddress::Reach reach, const std::set<std::string>& hosts,
              const std::vector<HostAddress>& addresses) {
  return std::ranges::all_of(hosts, [&](const std::string& host) {
    return std::ranges::any_of(addresses, [&](const HostAddress& address) {
      return address.text == host && address.reach == reach;
    });
  });
}

} // namespace

std::vector<std::string> announced(const std::vector<HostAddress>& addresses,
                                   const std::set<std::string>& met) {
  return all_have(HostAddress::Reach::network, met, addresses)
             ? std::vector(met.begin(), met.end())
             : announced(addresses, std::string());
}

bool are_of_this_host(const std::set<std::string>& met, const std::vector<HostAddress>& addresses) {
  return all_have(HostAddress::Reach::this_host, met, addresses);
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
