// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The invariant CRC of docs/protocol.md §6 (IBTA §7.8.1 and annex A17.3.3). Every function needs a
/// frame that parse() found to be `transport` or `message`.

#include "wire/crc32.hpp"
#include "wire/packet.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace weir::wire {

std::uint32_t compute_icrc(const ParsedBytes& frame);

inline std::uint32_t stored_icrc(const ParsedBytes& frame) {
  std::uint32_t icrc = 0; // the only field on the wire with the least byte first
  std::memcpy(&icrc, frame.data + frame.packet.icrc_offset, sizeof icrc);
  return icrc;
}

inline void store_icrc(ParsedBytes& frame, std::uint32_t icrc) {
  std::memcpy(frame.data + frame.packet.icrc_offset, &icrc, sizeof icrc);
}

inline bool icrc_is_valid(const ParsedBytes& frame) {
  return compute_icrc(frame) == stored_icrc(frame);
}

namespace detail {

void verify_icrc_now(ParsedBytes& frame);

} // namespace detail

/// Verifies the ICRC of a `message` frame, once, and stores the outcome in the frame. An ICRC is
/// linear: when only the payload changes, the ICRC changes by (frame.payload_crc xor the CRC of the
/// new payload and pad), whatever the headers are.
inline bool verify_icrc(ParsedBytes& frame) {
  if (frame.icrc == IcrcState::unverified) {
    detail::verify_icrc_now(frame);
  }
  return frame.icrc == IcrcState::valid;
}

/// The headers' share of the ICRC of one packet. That of others follows from it: an ICRC is linear,
/// and packets whose headers match (HeaderTemplate) differ in the IP id, AckReq, the PSN and an
/// immediate alone.
class HeaderIcrc {
 public:
  /// Whether no other header lies between BTH and payload.
  static bool fits(const Packet& packet) {
    return packet.opcode.extension_bytes == (packet.opcode.has_immediate != 0 ? sizeof(ImmDt) : 0);
  }

  /// Takes the share of a frame that has been verified and fits.
  void learn(const ParsedBytes& verified);

  /// As verify_icrc, for a frame whose headers match those of the one that was learnt. Takes least
  /// time if its PSN is the one behind that of the frame before it.
  bool verify(ParsedBytes& frame) {
    const Packet& packet = frame.packet;
    const std::size_t bytes = packet.icrc_offset - packet.payload_offset;
    const std::uint32_t payload = crc32(0, {frame.payload(), bytes});
    const bool is_valid = (share_of(frame) ^ payload) == stored_icrc(frame);
    frame.payload_crc = payload;
    frame.icrc = is_valid ? IcrcState::valid : IcrcState::bad;
    return is_valid;
  }

 private:
  /// Where a word lies that may differ, and what it was.
  struct Word {
    std::uint16_t offset = 0; // in the frame
    std::uint32_t value = 0;
    Crc32Shift to_end{0}; // what lies behind it, and the word

    void learn(const ParsedBytes& frame, std::size_t at);

    std::uint32_t word_in(const ParsedBytes& frame) const {
      std::uint32_t word = 0;
      std::memcpy(&word, frame.data + offset, sizeof word);
      return word;
    }

    std::uint32_t change_in(const ParsedBytes& frame) const;
  };

  /// A PSN that is counted up changes in its lowest bits alone: 15 of 16 times in no more than
  /// these.
  static constexpr std::size_t kMostCarried = 4;

  std::uint32_t share_of(const ParsedBytes& frame) {
    take_psn_of(frame);
    const bool has_usual_words = id_.word_in(frame) == id_.value && !has_immediate_;
    return has_usual_words ? share_ : share_ ^ change_in_others(frame);
  }

  /// From now on `share_` is that of packets with the frame's PSN.
  void take_psn_of(const ParsedBytes& frame) {
    const std::uint32_t word = psn_.word_in(frame);
    const std::uint32_t changed = __builtin_bswap32(word ^ psn_.value);
    const bool is_counted_up = changed < 1u << kMostCarried && (changed & (changed + 1)) == 0;
    share_ ^= is_counted_up ? carries_[std::popcount(changed)] : psn_.change_in(frame);
    psn_.value = word;
  }

  std::uint32_t change_in_others(const ParsedBytes& frame) const;

  std::uint32_t share_ = 0;
  Word id_;  // and fragment, which is the same
  Word psn_; // and AckReq; of the last frame
  // What so many changed bits at the PSN's end change in the ICRC: counting up turns a row of them.
  std::array<std::uint32_t, kMostCarried + 1> carries_{};
  Word immediate_; // if there is one
  bool has_immediate_ = false;
};

/// The CRC of the ICRC's input before frame offset `end`, which lies after the BTH: 8 bytes of
/// ones, then the frame from its IP header. Fields that routers may change are read as ones.
std::uint32_t icrc_prefix(const ParsedBytes& frame, std::size_t end);

} // namespace weir::wire
