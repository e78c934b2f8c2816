// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/collective/message_window.hpp"
#include "host/collective/reducer.hpp"

namespace weir::host {

/// The switch reduces. This sends the slice and copies the results out. It starts with the hello.
class SwitchReducer : public Reducer {
 public:
  explicit SwitchReducer(const WindowConfig& config) : window_(config) {}

  void begin(const Slice& slice) override;
  std::optional<OutgoingMessage> next() override;
  void accept(std::uint32_t immediate, std::span<const std::uint8_t> message) override;

  void complete() override { window_.complete(); }

  std::size_t bytes_done() const override { return bytes_done_; }

  bool is_idle() const override { return window_.state() == MessageWindow::State::idle; }

  std::string describe() const override { return window_.describe(); }

  const MessageWindow& window() const { return window_; }

 private:
  MessageWindow window_;
  Slice slice_;
  std::size_t bytes_done_ = 0;
};

} // namespace weir::host
