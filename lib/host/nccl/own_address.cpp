// SPDX-License-Identifier: BSD-3-Clause
#include "host/nccl/own_address.hpp"

#include "host/base/interface_addresses.hpp"
#include "host/nccl/call.hpp"
#include "host/nccl/settings.hpp"

#include <cstring>
#include <net/if.h>
#include <stdexcept>
#include <tuple>

namespace weir::nccl {
namespace {

/// Of this host.
host::InterfaceAddresses read_addresses() {
  try {
    return host::read_interface_addresses();
  } catch (const std::runtime_error& error) {
    throw Failure(Result::system_error, error.what());
  }
}

bool can_be_reached(const ifaddrs& entry) {
  return (entry.ifa_flags & IFF_UP) != 0 && host::length_of(entry.ifa_addr) != 0;
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
  const host::InterfaceAddresses addresses = read_addresses();
  const std::string wanted = environment("NCCL_SOCKET_IFNAME");
  const ifaddrs* best = nullptr;
  for (const ifaddrs* each = addresses.get(); each != nullptr; each = each->ifa_next) {
    if (can_be_reached(*each) && (best == nullptr || rank_of(*each, wanted, interface) <
                                                         rank_of(*best, wanted, interface))) {
      best = each;
    }
  }
  if (best == nullptr) {
    throw Failure(Result::system_error, "point-to-point: this host has no address");
  }
  sockaddr_storage address{};
  std::memcpy(&address, best->ifa_addr, host::length_of(best->ifa_addr));
  return address;
}

} // namespace weir::nccl
