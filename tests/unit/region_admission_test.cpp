// SPDX-License-Identifier: BSD-3-Clause

/// Which regions a switch makes: whose hosts, which packets, and what of the rooms. A region takes
/// its members times its window of the frames (docs/regions.md).

#include "control/region_admission.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <gmock/gmock.h>
#include <string>
#include <vector>

namespace weir::control::region_admission_test {
namespace {

using testing::HasSubstr;

/// Red may have half of the regions, and so half of the rest; blue one; green none.
const config::Config& config() {
  static const config::Config config = config::parse_config(
      R"(ports: [{ name: p0, device: a, mtu: 1500 }, { name: p1, device: b, mtu: 9000 }]
tenants:
  - { name: red, regions: 2, hosts: [10.1.0.0/16] }
  - { name: blue, regions: 1, region_members: 3, region_frames: 100, hosts: [10.2.0.0/16] }
  - { name: green, hosts: [10.3.0.0/16] }
  - { name: anywhere, regions: 1 }
regions: { address: 10.0.0.254, mac: "02:57:45:00:00:01", rooms: { regions: 4, members: 16, frames: 640, entries: 40 } }
)",
      "f");
  return config;
}

/// Of hosts 10.`network`.0.1 and so on.
region::RegionSpec region_of(unsigned network, std::uint32_t members = 2,
                             std::uint32_t window = 16) {
  region::RegionSpec spec{.id = 0, .bytes = 4096, .window = window, .members = {}};
  for (std::uint32_t member = 1; member <= members; ++member) {
    spec.members.push_back(
        {.ip = *wire::parse_ip(fmt::format("10.{}.{}.{}", network, member / 256, member % 256)),
         .port = {},
         .queue_pair = 16 + member});
  }
  return spec;
}

/// Nothing, or why not.
std::string refusal_of(const std::function<void()>& check) {
  try {
    check();
    return {};
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

std::string refusal(const region::RegionSpec& spec, const std::string& tenant = {},
                    const Principal& principal = {}) {
  return refusal_of([&] {
    RegionAdmission(config()).check({spec, tenant}, principal, config().ports);
  });
}

TEST(RegionAdmission, TakesATenantsOwnHosts) {
  const Principal red{"red"};
  EXPECT_EQ(refusal(region_of(1), "red", red), "");
  const char* const no_host = "members[0].ip: found 10.2.0.1, which is no host of tenant red; "
                              "allowed: an address in its hosts:, 10.1.0.0/16";
  EXPECT_EQ(refusal(region_of(2), "red", red), no_host);
  EXPECT_EQ(refusal(region_of(2), "red"), no_host) << "an operator asks for red";
  region::RegionSpec last_is_blues = region_of(1, 3);
  last_is_blues.members.back().ip = *wire::parse_ip("10.2.0.1");
  EXPECT_THAT(refusal(last_is_blues, "red", red), HasSubstr("members[2].ip: found 10.2.0.1"));
  EXPECT_THAT(refusal(region_of(9), "red", red), HasSubstr("found 10.9.0.1, which is no host of"))
      << "nobody's host is told from another tenant's";
}

TEST(RegionAdmission, TakesNoTenantForAnother) {
  const auto check = [](const std::string& tenant) {
    RegionAdmission(config()).check({region_of(2), tenant}, {"red"}, config().ports);
  };
  EXPECT_THROW(check("blue"), NotAllowed);
  EXPECT_THROW(check(""), NotAllowed);
  EXPECT_EQ(refusal(region_of(2), "blue", {"red"}), "tenant: found 'blue'; allowed: red");
  EXPECT_EQ(refusal(region_of(2), "violet"),
            "tenant: found violet; allowed: a name under tenants:");
}

/// Whose a host is, the switch would not know.
TEST(RegionAdmission, TakesATenantWithoutHostsFromAnOperator) {
  EXPECT_EQ(refusal(region_of(1), "anywhere", {"anywhere"}),
            "members: found a region of tenant anywhere, which has no hosts:; allowed: configure "
            "hosts: for the tenant, or an operator's call");
  EXPECT_EQ(refusal(region_of(1), "anywhere"), "");
}

TEST(RegionAdmission, TakesHostsOfTheRegionsFamily) {
  region::RegionSpec spec = region_of(1);
  spec.members[0].ip = config().regions->address;
  EXPECT_EQ(refusal(spec), "members[0].ip: found 10.0.0.254; allowed: a host's IPv4 address, as "
                           "the regions' own, 10.0.0.254");
  spec.members[0].ip = *wire::parse_ip("2001:db8::1");
  EXPECT_EQ(refusal(spec), "region 0, member 1: found address 10.1.0.2; allowed: one of the family "
                           "of member 0's, 2001:db8::1");
  spec.members[1].ip = *wire::parse_ip("2001:db8::2");
  EXPECT_EQ(refusal(spec), "members[0].ip: found 2001:db8::1; allowed: a host's IPv4 address, as "
                           "the regions' own, 10.0.0.254");
}

/// A WRITE ONLY with an immediate has 20 + 8 + 12 + 16 + 4 bytes before its payload, and an ICRC of
/// 4 behind it (RFC 791; RFC 768; IBTA §9.2 to §9.3).
TEST(RegionAdmission, TakesPacketsThatFitThePorts) {
  region::RegionSpec spec = region_of(1);
  spec.mtu = 2048;
  EXPECT_EQ(refusal(spec), "mtu: found 2048, which makes packets of 2112 bytes for member 0 "
                           "(10.1.0.1), over port p0's mtu of 1500; allowed: a smaller one");
  spec.members[0].port = 1;
  EXPECT_THAT(refusal(spec), HasSubstr("for member 1 (10.1.0.2), over port p0's mtu"));
  spec.members[1].port = 1;
  spec.members[0].port = 1;
  std::vector<config::PortConfig> ports = config().ports;
  EXPECT_NO_THROW(RegionAdmission::check_ports(spec, ports));
  ports[1] = {}; // a reload has closed it
  EXPECT_EQ(refusal_of([&] { RegionAdmission::check_ports(spec, ports); }),
            "members[0].port: found one that was closed just now; allowed: a port that there is, "
            "or none");
  spec.members[1].port = 1;
  EXPECT_EQ(refusal(spec), "") << "both are behind p1";
}

TEST(RegionAdmission, NeedsRooms) {
  const config::Config without =
      config::parse_config("ports: [{ name: p0, device: a }]\ntenants: [{ name: red }]\n", "f");
  EXPECT_EQ(refusal_of([&] {
              RegionAdmission(without).check({region_of(1), ""}, {}, without.ports);
            }),
            "this switch has no regions; allowed: a configuration with regions:");
  EXPECT_TRUE(RegionAdmission(without).shares({}).empty());
}

/// Regions that are held.
class Rooms {
 public:
  Rooms& with(std::uint32_t id, region::RegionSpec spec, const std::string& tenant) {
    spec.id = id;
    held_.push_back({spec, tenant});
    return *this;
  }

  std::string refusal(const region::RegionSpec& spec, const std::string& tenant) const {
    return refusal_of([&] { RegionAdmission(config()).check_room({spec, tenant}, all()); });
  }

  std::vector<RegionShare> shares() const { return RegionAdmission(config()).shares(all()); }

 private:
  std::vector<RegionHeld> all() const {
    std::vector<RegionHeld> all;
    for (const WantedRegion& one : held_) {
      all.push_back({one.spec, one.tenant});
    }
    return all;
  }

  std::vector<WantedRegion> held_;
};

TEST(RegionAdmission, BoundsATenantsRegions) {
  const Rooms rooms = Rooms().with(7, region_of(1), "red").with(9, region_of(1), "red");
  EXPECT_EQ(rooms.refusal(region_of(1), "red"),
            "the region needs 1 regions; tenant red may have 2 and has 2, held by region 7: 1, "
            "region 9: 1; allowed: end one of its regions, or configure more regions: for the "
            "tenant");
  EXPECT_EQ(rooms.refusal(region_of(2), "blue"), "");
  EXPECT_EQ(rooms.refusal(region_of(1), ""), "");
  EXPECT_EQ(Rooms().with(7, region_of(1), "red").refusal(region_of(1), "red"), "");
}

/// An operator's own limit is what there is room for.
TEST(RegionAdmission, TakesATenantWithoutAShareFromAnOperator) {
  EXPECT_EQ(refusal(region_of(3), "green", {"green"}),
            "tenant: found green, which may hold no regions; allowed: configure regions: for the "
            "tenant, or an operator's call");
  EXPECT_EQ(refusal(region_of(3), "green"), "");
  EXPECT_EQ(Rooms().refusal(region_of(3, 16, 40), "green"), "");
}

TEST(RegionAdmission, GivesNobodyMoreThanThereIs) {
  config::Config more = config();
  more.tenants[1].regions = 5;
  more.tenants[1].region_members = 17;
  more.tenants[1].region_frames = 641;
  const RegionUse most = RegionAdmission(more).most_of("blue");
  EXPECT_EQ(most.regions, 4U);
  EXPECT_EQ(most.members, 16U);
  EXPECT_EQ(most.frames, 640U);
}

TEST(RegionAdmission, BoundsATenantsMembersAndFrames) {
  EXPECT_EQ(Rooms().refusal(region_of(2, 4, 2), "blue"),
            "the region needs 4 members; tenant blue may have 3 and has 0, held by no region; "
            "allowed: fewer members, end one of its regions, or configure more region_members: for "
            "the tenant");
  EXPECT_EQ(Rooms().refusal(region_of(2, 3, 33), "blue"), "");
  EXPECT_EQ(Rooms().refusal(region_of(2, 3, 34), "blue"),
            "the region needs 102 frames; tenant blue may have 100 and has 0, held by no region; "
            "allowed: fewer members or a smaller window, end one of its regions, or configure more "
            "region_frames: for the tenant");
}

/// Two of four regions: 8 of 16 members, 320 of 640 frames.
TEST(RegionAdmission, GivesATenantThePartOfTheRoomsThatItsRegionsAre) {
  const Rooms rooms = Rooms().with(7, region_of(1, 5, 32), "red");
  EXPECT_EQ(rooms.refusal(region_of(1, 3, 53), "red"), "");
  EXPECT_THAT(rooms.refusal(region_of(1, 3, 54), "red"),
              HasSubstr("needs 162 frames; tenant red may have 320 and has 160, held by region 7: "
                        "160;"));
  EXPECT_THAT(rooms.refusal(region_of(1, 4, 2), "red"),
              HasSubstr("needs 4 members; tenant red may have 8 and has 5, held by region 7: 5;"));
  const std::vector<RegionShare> shares = rooms.shares();
  ASSERT_EQ(shares.size(), 4U);
  EXPECT_EQ(shares[0].tenant, "red");
  EXPECT_EQ(shares[0].now.frames, 160U);
  EXPECT_EQ(shares[0].most.frames, 320U);
  EXPECT_EQ(shares[1].now.regions, 0U) << "blue has none of red's";
}

/// The usual window is 64, so two members take 128 frames.
TEST(RegionAdmission, WarnsOfSharesThatAreTooSmallForAUsualRegion) {
  EXPECT_THAT(small_region_shares(config()),
              testing::ElementsAre(
                  "tenants[blue].region_frames: found a share of 100 frames, but a region of 2 "
                  "members with the usual window of 64 takes 128; right would be: region_frames: "
                  "128 or more"));
  config::Config other = config();
  other.tenants[0].region_frames = 128;
  other.tenants[0].region_members = 1;
  other.tenants[1].region_frames = 128;
  other.tenants[2].region_frames = 1; // it holds none by itself
  EXPECT_THAT(small_region_shares(other),
              testing::ElementsAre(HasSubstr("tenants[red].region_members: found a share of 1 ")));
  other.regions->rooms.frames = 127;
  EXPECT_THAT(small_region_shares(other),
              testing::Contains(
                  testing::EndsWith("region_frames: 128 or more, and so regions.rooms.frames")));
  other.regions.reset();
  EXPECT_THAT(small_region_shares(other), testing::IsEmpty());
}

/// An entry takes a frame of each member; who cannot read has none.
TEST(RegionAdmission, BoundsEntriesOfRegionsWithViews) {
  region::RegionSpec reads = region_of(1, 2, 16);
  const Rooms without = Rooms().with(7, reads, "red");
  reads.views = {{Operation::sum, DataType::f32}};
  const Rooms rooms = Rooms().with(7, reads, "red");
  EXPECT_EQ(without.shares()[0].now.frames, 2U * 16);
  EXPECT_EQ(rooms.shares()[0].now.frames, 2U * (16 + 32));
  EXPECT_EQ(without.refusal(reads, "red"), "");
  EXPECT_EQ(rooms.refusal(region_of(1, 2, 16), "red"), "");
  const char* const too_many = "the region needs 32 entries, 8 are free; allowed: fewer entries, "
                               "end a region, or configure a larger regions.rooms.entries";
  EXPECT_EQ(rooms.refusal(reads, "red"), too_many) << "no tenant has a share of its own";
  EXPECT_EQ(rooms.refusal(reads, ""), too_many);
  reads.entries = 8;
  EXPECT_EQ(rooms.refusal(reads, "red"), "");
}

/// A limit is no reservation.
TEST(RegionAdmission, HasTheRoomThatOthersLeave) {
  const Rooms rooms = Rooms().with(1, region_of(8, 10, 60), "");
  EXPECT_EQ(rooms.refusal(region_of(2, 2, 20), "blue"), "");
  EXPECT_EQ(rooms.refusal(region_of(2, 2, 21), "blue"),
            "the region needs 42 frames, 40 are free; allowed: fewer members or a smaller window, "
            "end a region, or configure a larger regions.rooms.frames")
      << "it names nobody's regions";
}

/// The rooms bound no product of members and frames: 256 members' windows of 4096 would be 2^28.
TEST(RegionAdmission, BoundsTheRecordsOfARegion) {
  const config::Config large = config::parse_config(
      "ports: [{ name: p0, device: a }]\n"
      "regions: { address: 10.0.0.254, mac: \"02:57:45:00:00:01\", rooms: { regions: 1, members: "
      "256, frames: 67108864 } }\n",
      "f");
  const auto refused = [&](std::uint32_t window) {
    return refusal_of([&] {
      RegionAdmission(large).check_room({region_of(1, 256, window), ""}, {});
    });
  };
  EXPECT_EQ(refused(128), "");
  EXPECT_EQ(refused(129), "the region needs 256 x 256 members x window 129 = 8454144 records of "
                          "copies under way; allowed: at most 8388608, by fewer members or a "
                          "smaller window");
}

} // namespace
} // namespace weir::control::region_admission_test
