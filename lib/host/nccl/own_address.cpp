// SPDX-License-Identifier: BSD-3-Clause
#include "host/nccl/own_address.hpp"

#include "host/nccl/call.hpp"
#include "host/nccl/settings.hpp"

#include <fmt/format.h>

#include <cstring>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netinet/in.h>
#include <tuple>

namespace weir::nccl {
namespace {

bool can_be_reached(const ifaddrs& entry) {
  if (entry.ifa_addr == nullptr || (entry.ifa_flags & IFF_UP) == 0) {
    return false;
  }
  if (entry.ifa_addr->sa_family == AF_INET6) {
    const auto& address = *reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr);
    return !IN6_IS_ADDR_LINKLOCAL(&address.sin6_addr);
  }
  return entry.ifa_addr->sa_family == AF_INET;
}

/// What NCCL_SOCKET_IFNAME says of an interface by its first name; "^" excludes, which is left to
/// the order of interfaces.
bool is_wanted(const std::string& wanted, const std::string& name) {
  const std::string first = wanted.substr(0, wanted.find(','));
  if (first.empty() || first.front() == '^') {
    return false;
  }
  return first.front() == '=' ? name == first.substr(1) : name.starts_with(first);
}

/// The least is best.
auto rank_of(const ifaddrs& entry, const std::string& wanted, const std::string& interface) {
  const std::string name = entry.ifa_name;
  return std::tuple(!is_wanted(wanted, name), name != interface,
                    (entry.ifa_flags & IFF_LOOPBACK) != 0, entry.ifa_addr->sa_family != AF_INET);
}

} // namespace

sockaddr_storage own_address(const std::string& interface) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    throw Failure(Result::system_error, "the addresses of this host: not to be had");
  }
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> addresses(list, &freeifaddrs);
  const std::string wanted = variable("NCCL_SOCKET_IFNAME");
  const ifaddrs* best = nullptr;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (can_be_reached(*each) && (best == nullptr || rank_of(*each, wanted, interface) <
                                                         rank_of(*best, wanted, interface))) {
      best = each;
    }
  }
  if (best == nullptr) {
    throw Failure(Result::system_error, "point-to-point: this host has no address");
  }
  sockaddr_storage address{};
  std::memcpy(&address, best->ifa_addr,
              best->ifa_addr->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  return address;
}

} // namespace weir::nccl
