// SPDX-License-Identifier: BSD-3-Clause
#include "host/rendezvous/meeting_handle.hpp"

#include "host/base/frame_seal.hpp"
#include "wire/address.hpp"
#include "wire/big_endian.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>

namespace weir::host {
namespace {

constexpr std::uint32_t kHandleMagic = 0x57454952; // "WEIR"
constexpr std::uint8_t kHandleVersion = 1;
constexpr std::size_t kHandleSecretBytes = 32;
constexpr std::size_t kIpv4Bytes = 4;
constexpr std::size_t kIpv6Bytes = 16;
constexpr std::uint8_t kIpv4 = 4; // before an address
constexpr std::uint8_t kIpv6 = 6;
constexpr std::string_view kAllowed = "the 128 bytes that weir_listen made on rank 0";

using Check = std::array<std::uint8_t, 8>;

struct Handle {
  wire::be32 magic;
  std::uint8_t version;
  std::uint8_t addresses;
  wire::be16 port;
  Check check;
  std::array<std::uint8_t, kHandleSecretBytes> secret;
  std::array<std::uint8_t, 80> list;
};

static_assert(sizeof(Handle) == kHandleBytes);
static_assert(sizeof(Handle::list) / (1 + kIpv6Bytes) == 4);

ByteView bytes_of_text(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

MeetingHandle raw(const Handle& handle) {
  MeetingHandle bytes;
  std::copy_n(reinterpret_cast<const std::uint8_t*>(&handle), sizeof(handle), bytes.begin());
  return bytes;
}

Check check_of(Handle handle) {
  handle.check = {};
  const Mac mac = mac_of(handle.secret, {bytes_of_text("weir handle 1:"), raw(handle)});
  Check check;
  std::copy_n(mac.begin(), check.size(), check.begin());
  return check;
}

/// With the byte that says what it is.
std::string packed(const wire::IpAddress& ip) {
  const std::size_t bytes = ip.is_v4() ? kIpv4Bytes : kIpv6Bytes;
  const auto tail = std::span(ip.bytes).last(bytes);
  std::string text(1, static_cast<char>(ip.is_v4() ? kIpv4 : kIpv6));
  return text.append(tail.begin(), tail.end());
}

/// Takes the next address from the list.
std::optional<wire::IpAddress> take_address(ByteView& list) {
  const std::uint8_t kind = list.empty() ? std::uint8_t{0} : list[0];
  const std::size_t bytes = kind == kIpv4 ? kIpv4Bytes : kIpv6Bytes;
  if ((kind != kIpv4 && kind != kIpv6) || list.size() <= bytes) {
    return std::nullopt;
  }
  const std::uint8_t* const at = list.data() + 1;
  list = list.subspan(1 + bytes);
  return kind == kIpv4 ? wire::IpAddress::from_v4(at) : wire::IpAddress::from_v6(at);
}

[[noreturn]] void refuse(std::string_view found) {
  throw std::invalid_argument(fmt::format("handle: found {}; allowed: {}", found, kAllowed));
}

/// The bytes of one of Weir, of this version and as they were made.
Handle checked(std::string_view bytes) {
  if (bytes.size() != kHandleBytes) {
    refuse(fmt::format("{} bytes", bytes.size()));
  }
  const auto& handle = wire::view_as<Handle>(reinterpret_cast<const std::uint8_t*>(bytes.data()));
  if (handle.magic.get() != kHandleMagic) {
    refuse("bytes that are no handle of Weir");
  }
  if (handle.version != kHandleVersion) {
    refuse(fmt::format("version {}, of another version of this library; this one has {}",
                       handle.version, kHandleVersion));
  }
  if (check_of(handle) != handle.check) {
    refuse("bytes that were changed or cut on their way");
  }
  return handle;
}

} // namespace

MeetingHandle make_handle(const RendezvousPoint& point) {
  Handle handle{};
  handle.magic.set(kHandleMagic);
  handle.version = kHandleVersion;
  std::string list;
  for (const Endpoint& endpoint : point.endpoints) {
    const std::optional<wire::IpAddress> ip = wire::parse_ip(endpoint.host);
    const std::string next = ip ? packed(*ip) : "";
    if (!next.empty() && list.size() + next.size() <= handle.list.size()) {
      list += next;
      ++handle.addresses;
    }
  }
  if (handle.addresses == 0) {
    throw std::runtime_error("this host has no address that others can use");
  }
  handle.port.set(static_cast<std::uint16_t>(std::stoi(point.endpoints.front().port)));
  std::copy_n(point.secret.begin(), std::min(point.secret.size(), kHandleSecretBytes),
              handle.secret.begin());
  std::ranges::copy(list, handle.list.begin());
  handle.check = check_of(handle);
  return raw(handle);
}

RendezvousPoint read_handle(std::string_view bytes) {
  const Handle handle = checked(bytes);
  const std::string port = std::to_string(handle.port.get());
  RendezvousPoint point{{}, std::string(handle.secret.begin(), handle.secret.end())};
  ByteView list = handle.list;
  for (std::uint8_t place = 0; place < handle.addresses; ++place) {
    const std::optional<wire::IpAddress> ip = take_address(list);
    if (!ip) {
      refuse("addresses that cannot be read");
    }
    point.endpoints.push_back({wire::to_string(*ip), port});
  }
  if (point.endpoints.empty() || handle.port.get() == 0) {
    refuse("no address or port");
  }
  return point;
}

} // namespace weir::host
