// SPDX-License-Identifier: BSD-3-Clause

/// docs/security.md, "Tables that packets can fill": a stranger floods by its own port, and the
/// jobs of other ports go on.

#include "classifier_fixture.hpp"
#include "switch_fixture.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace weir::stage::flood_test {
namespace {

using conn::poked;
using conn::poked_byte;
using test::InaSpec;
using test::kNonce;

constexpr std::uint32_t kOtherRing = 77; // another switch's
constexpr std::uint16_t kHostsPort = 0;
constexpr std::uint16_t kOtherSwitch = 1; // the port behind which all other hosts are
constexpr std::uint16_t kStrangersPort = 3;
constexpr std::uint32_t kFlood = 20'000; // frames

/// What the switch knows of the addresses between which another switch's ring sends.
enum class Hosts : std::uint8_t { strangers, neighbours_in_a_ring_here };

/// Rank 0 of another switch's ring.
class ForeignJob {
 public:
  explicit ForeignJob(Hosts hosts)
      : fixture_(hosts == Hosts::strangers ? std::vector<const RingJob*>{}
                                           : std::vector<const RingJob*>{&job_}) {
    for (std::uint16_t rank = 0; rank < job_.spec().world; ++rank) {
      Bytes frame(60, 0xff);
      const auto mac = job_.mac_of(rank).bytes;
      std::copy(mac.begin(), mac.end(), frame.begin() + 6);
      test::put16(frame, 12, 0x0806);
      fixture_.send(frame, rank == 0 ? kHostsPort : kOtherSwitch);
    }
  }

  Built hello() const { return of_other_ring(job_.hello(0)); }

  Built answer(std::uint32_t nonce, std::uint32_t session) const {
    const Built numbered = poked(of_other_ring(job_.hello(2)), test::kInaMessageAt, nonce);
    return poked_byte(poked(numbered, test::kInaSessionAt, session), test::kInaFlagsAt, 1);
  }

  /// A message's FIRST, with the magic, on this queue pair.
  Built first(std::uint32_t qp) const {
    FrameSpec frame = job_.frame_of(0);
    frame.opcode = kFirst;
    frame.qp = qp;
    frame.psn = kPsn;
    InaSpec ina = job_.ina_of(0, 1, kTwoPackets);
    ina.ring = kOtherRing;
    frame.payload = encode(ina);
    frame.payload.resize(job_.spec().mtu, 0x22);
    return build(frame);
  }

  /// Without it.
  Built plain(std::uint8_t opcode, std::uint32_t qp) const {
    FrameSpec frame = job_.frame_of(0);
    frame.opcode = opcode;
    frame.qp = qp;
    frame.psn = kPsn + 1;
    frame.payload = Bytes(opcode == kOnly ? 64 : job_.spec().mtu, 0x11);
    return build(frame);
  }

  std::uint32_t qp() const { return job_.qp_of(0); }

  /// The stranger sends it, by its own port and from its own station: where a station is, everybody
  /// may say.
  void forge(Built frame) {
    constexpr std::array<std::uint8_t, 6> station{0x02, 0xee, 0, 0, 0, 1};
    std::ranges::copy(station, frame.bytes.begin() + 6);
    fixture_.now.ns += 100'000;
    fixture_.send(frame, kStrangersPort);
  }

  /// Whether the frame leaves as it came.
  bool passes(const Built& frame, std::uint16_t port) {
    const auto sent = fixture_.send(frame, port);
    return sent.size() == 1 && sent[0].bytes == frame.bytes;
  }

  void expect_to_work() {
    EXPECT_TRUE(passes(hello(), kHostsPort));
    EXPECT_TRUE(passes(answer(kNonce, kSession), kOtherSwitch));
    expect_to_go_on();
  }

  void expect_to_go_on() {
    EXPECT_TRUE(passes(first(qp()), kHostsPort));
    EXPECT_TRUE(passes(plain(kMiddle, qp()), kHostsPort));
  }

  static constexpr std::uint8_t kFirst = 0x06;
  static constexpr std::uint8_t kMiddle = 0x07;
  static constexpr std::uint8_t kOnly = 0x0a;

 private:
  static constexpr std::uint32_t kPsn = 0x123;
  static constexpr std::uint32_t kTwoPackets = 400; // bytes of data

  static Built of_other_ring(const Built& frame) {
    return poked(frame, test::kInaRingAt, kOtherRing);
  }

  RingJob job_{{.world = 3}};
  SwitchFixture fixture_;
};

class Flood : public testing::TestWithParam<Hosts> {
 protected:
  ForeignJob job_{GetParam()};
};

TEST_P(Flood, WithoutItTheJobWorks) {
  job_.expect_to_work();
}

/// 98 bytes each.
TEST_P(Flood, OfForgedResultsEndsNobodysJob) {
  EXPECT_TRUE(job_.passes(job_.hello(), kHostsPort));
  EXPECT_TRUE(job_.passes(job_.answer(kNonce, kSession), kOtherSwitch));
  for (std::uint32_t forged = 1; forged <= kFlood; ++forged) {
    job_.forge(job_.answer(kNonce, kSession + forged));
  }
  job_.expect_to_go_on();
}

TEST_P(Flood, OfHellosEndsNobodysJob) {
  EXPECT_TRUE(job_.passes(job_.hello(), kHostsPort));
  for (std::uint32_t forged = 1; forged <= kFlood; ++forged) {
    job_.forge(poked(job_.hello(), test::kInaSessionAt, forged));
  }
  EXPECT_TRUE(job_.passes(job_.answer(kNonce, kSession), kOtherSwitch));
  job_.expect_to_go_on();
}

TEST_P(Flood, OfForgedMessagesKeepsNobodyOut) {
  for (std::uint32_t forged = 1; forged <= kFlood / 10; ++forged) {
    job_.forge(job_.first(0x10'0000 + forged));
  }
  job_.expect_to_work();
}

TEST_P(Flood, OfForgedMessagesEndsNobodysJob) {
  job_.expect_to_work();
  for (std::uint32_t forged = 1; forged <= kFlood / 10; ++forged) {
    job_.forge(job_.first(0x10'0000 + forged));
    job_.forge(job_.plain(ForeignJob::kOnly, 0x20'0000 + forged));
  }
  job_.expect_to_go_on();
}

TEST_P(Flood, AForgedMessageOfTheJobDoesNotBarIt) {
  job_.expect_to_work();
  job_.forge(poked(job_.first(job_.qp()), test::kInaSessionAt, 1));
  EXPECT_TRUE(job_.passes(job_.plain(ForeignJob::kMiddle, job_.qp()), kHostsPort));
}

INSTANTIATE_TEST_SUITE_P(Between, Flood,
                         testing::Values(Hosts::strangers, Hosts::neighbours_in_a_ring_here),
                         [](const auto& hosts) {
                           return std::string(hosts.param == Hosts::strangers ? "Strangers"
                                                                              : "Neighbours");
                         });

} // namespace
} // namespace weir::stage::flood_test
