// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/region/region_link.hpp"
#include "host/transport/nic.hpp"
#include "host/transport/nic_connection.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace weir::host {

/// Over a queue pair of a NIC. A request is posted in pieces, each a message: so a long one makes
/// progress that can be seen, and none is longer than the device's messages may be. Pieces of
/// memory that the device does not know go through staging.
class NicRegionLink : public RegionLink {
 public:
  static constexpr std::size_t kStagedBytes = 32 << 10; // of a piece, at most
  static constexpr std::size_t kPieceBytes = 1 << 20;   // likewise, of registered memory

  NicRegionLink(const RegionLinkPlan& plan, Nic& nic, std::uint8_t gid_index);

  RegionMember member() const override { return member_; }

  void connect(const MadeRegion& region, const RegionEnd& end) override;
  bool post(const endpoint::SendRequest& request) override;
  void post_receive() override;
  bool poll(RegionListener& listener) override;

  std::optional<Error> failure() const override { return failure_; }

  void close() override;

  std::uint64_t progress() const override { return pieces_ended_; }

  int descriptor() const override { return connection_->descriptor(); }

  bool arm() override;

  Deadline due() const override { return Deadline::max(); } // timers are the NIC's

 private:
  struct Request {
    endpoint::SendRequest work;
    std::optional<std::uint32_t> key; // none: its memory goes through staging
    std::size_t posted = 0;           // bytes
  };

  struct Piece {
    std::span<std::uint8_t> target; // where what has been read into staging goes
    bool is_last = false;           // of its request
  };

  template <typename Action>
  void attempt(Action action);
  void feed();
  void post_piece(Request& request);
  void take_send(RegionListener& listener);
  void fail(const NicCompletion& completion);
  std::span<std::uint8_t> slot_of(std::uint64_t piece);

  const RegionLinkPlan plan_;
  std::vector<std::uint8_t> staging_; // slots, one for each piece posted
  const std::unique_ptr<NicConnection> connection_;
  RegionMember member_;
  wire::IpAddress region_ip_;
  std::deque<Request> requests_; // not completed
  std::size_t whole_ = 0;        // of these, the first, that are posted to their ends
  std::deque<Piece> pieces_;     // posted, and not ended
  std::uint64_t pieces_ended_ = 0;
  std::optional<Error> failure_;
  bool is_flush_ = false; // failure_ tells that it has failed, and not why
  bool is_closed_ = false;
};

} // namespace weir::host
