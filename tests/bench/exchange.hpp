// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/collective/message_window.hpp"
#include "host/collective/switch_reducer.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace weir::bench {

/// Part of a tensor, in bytes.
using Piece = host::MessageWindow::Piece;

/// One rank's side of an all-reduce of i32 sums: which messages it sends to its successor, and what
/// it does with those from its predecessor. Messages arrive in the order of sending.
class Exchange {
 public:
  struct Message {
    std::span<const std::uint8_t> header;
    std::span<const std::uint8_t> data;
  };

  virtual ~Exchange() = default;

  /// The next message, if it may be sent now. Its bytes must stay until it is acknowledged.
  virtual std::optional<Message> next() = 0;
  virtual void arrived(std::uint32_t number, std::span<const std::uint8_t> message) = 0;
  virtual void acknowledged() = 0;
  virtual bool is_done() const = 0;
};

/// Through the switch: docs/protocol.md §7 by the host library's reducer. Says hello first.
class SwitchExchange : public Exchange {
 public:
  SwitchExchange(const host::WindowConfig& config, std::span<std::uint8_t> tensor);

  /// The tensor as so many all-reduces of equal length, all begun at once; after the hello.
  void begin(std::uint32_t calls);

  std::optional<Message> next() override;
  void arrived(std::uint32_t number, std::span<const std::uint8_t> message) override;

  void acknowledged() override { reducer_.complete(); }

  bool is_done() const override { return reducer_.is_idle(); }

 private:
  host::SwitchReducer reducer_;
  std::span<std::uint8_t> tensor_;
};

/// On the hosts' ring: reduce-scatter, then all-gather (Patarasuk and Yuan, "Bandwidth optimal
/// all-reduce algorithms for clusters of workstations", JPDC 69, 2009). In step s of 2(n-1), rank r
/// sends chunk r-s and gets chunk r-s-1. It adds what comes in the first n-1 steps and copies what
/// comes later. It sends a message on as soon as it has come, so the steps overlap. Adding takes no
/// time.
class RingExchange : public Exchange {
 public:
  /// `message_bytes` of a full message.
  RingExchange(std::uint16_t rank, std::uint16_t world, std::span<std::uint8_t> tensor,
               std::uint32_t message_bytes);

  std::optional<Message> next() override;
  void arrived(std::uint32_t number, std::span<const std::uint8_t> message) override;

  void acknowledged() override {}

  bool is_done() const override { return arrived_ == incoming_.size(); }

 private:
  void add_chunk(std::vector<Piece>& pieces, std::uint16_t chunk) const;

  std::uint16_t world_;
  std::uint32_t message_bytes_;
  std::span<std::uint8_t> tensor_;
  std::vector<Piece> outgoing_; // the first chunk's, then incoming_ without those of the last step
  std::vector<Piece> incoming_;
  std::size_t first_chunk_ = 0; // messages that need not wait
  std::size_t to_add_ = 0;      // of incoming_, those of reduce-scatter
  std::size_t sent_ = 0;
  std::size_t arrived_ = 0;
};

} // namespace weir::bench
