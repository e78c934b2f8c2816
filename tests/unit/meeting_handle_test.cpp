// SPDX-License-Identifier: BSD-3-Clause

/// The bytes by which ranks find a listener.

#include "host/rendezvous/meeting_handle.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <gmock/gmock.h>
#include <stdexcept>
#include <string>
#include <vector>

namespace weir::host::meeting_handle_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::string kSecret = "0123456789abcdef0123456789abcdeF";

RendezvousPoint point_of(const std::vector<std::string>& hosts) {
  RendezvousPoint point{{}, kSecret};
  for (const std::string& host : hosts) {
    point.endpoints.push_back({host, "40123"});
  }
  return point;
}

std::string handle_of(const std::vector<std::string>& hosts) {
  const MeetingHandle handle = make_handle(point_of(hosts));
  return {handle.begin(), handle.end()};
}

std::vector<std::string> hosts_in(const std::string& handle) {
  std::vector<std::string> hosts;
  for (const Endpoint& endpoint : read_handle(handle).endpoints) {
    EXPECT_EQ(endpoint.port, "40123");
    hosts.push_back(endpoint.host);
  }
  return hosts;
}

std::string objection_to(const std::string& handle) {
  try {
    read_handle(handle);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "none";
}

TEST(MeetingHandle, HasAddressesOfBothKindsInTheirOrderAndTheSecret) {
  const std::vector<std::string> hosts{"10.0.0.1", "2001:db8::7", "192.168.3.255", "fd00::1"};
  EXPECT_EQ(hosts_in(handle_of(hosts)), hosts);
  EXPECT_EQ(read_handle(handle_of(hosts)).secret, kSecret);
  EXPECT_EQ(handle_of(hosts).size(), 128);
}

TEST(MeetingHandle, HasAsManyAddressesAsThereIsRoomFor) {
  const std::vector<std::string> long_ones(9, "2001:db8:1:2:3:4:5:6");
  EXPECT_EQ(hosts_in(handle_of(long_ones)).size(), 4);
  const std::vector<std::string> short_ones(99, "10.0.0.1");
  EXPECT_EQ(hosts_in(handle_of(short_ones)).size(), 16);
  std::vector<std::string> both = long_ones;
  both.emplace_back("10.0.0.1");
  EXPECT_EQ(hosts_in(handle_of(both)).back(), "10.0.0.1") << "what fits is not left out";
}

/// A link-local address has the name of a link, which means nothing elsewhere.
TEST(MeetingHandle, IsNotMadeOfAddressesThatAreOfNoUse) {
  EXPECT_THROW(make_handle(point_of({})), std::runtime_error);
  EXPECT_THROW(make_handle(point_of({"fe80::1%eth0"})), std::runtime_error);
  EXPECT_EQ(hosts_in(handle_of({"fe80::1%eth0", "10.0.0.1"})),
            std::vector<std::string>{"10.0.0.1"});
}

TEST(MeetingHandle, IsRefusedWhenAnyBitWasChanged) {
  const std::string handle = handle_of({"10.0.0.1", "2001:db8::7"});
  for (std::size_t bit = 0; bit < 8 * handle.size(); ++bit) {
    std::string garbled = handle;
    garbled[bit / 8] = static_cast<char>(garbled[bit / 8] ^ (1 << bit % 8));
    EXPECT_THAT(objection_to(garbled), StartsWith("handle: found ")) << "bit " << bit;
  }
}

TEST(MeetingHandle, SaysWhatIsWrongWithIt) {
  const std::string handle = handle_of({"10.0.0.1"});
  EXPECT_EQ(objection_to(handle), "none");
  EXPECT_EQ(objection_to(handle.substr(0, 64)),
            "handle: found 64 bytes; allowed: the 128 bytes that weir_listen made on rank 0");
  EXPECT_THAT(objection_to(handle + "x"), HasSubstr("found 129 bytes"));
  EXPECT_THAT(objection_to(""), HasSubstr("found 0 bytes"));
  EXPECT_THAT(objection_to(std::string(128, '\0')), HasSubstr("no handle of Weir"));
  std::string cut = handle;
  cut.replace(40, 88, 88, '\0');
  EXPECT_THAT(objection_to(cut), HasSubstr("changed or cut on their way"));
  std::string newer = handle;
  newer[4] = 2;
  EXPECT_THAT(objection_to(newer), HasSubstr("version 2, of another version of this library"));
}

} // namespace
} // namespace weir::host::meeting_handle_test
