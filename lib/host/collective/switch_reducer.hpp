// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/collective/message_window.hpp"
#include "host/collective/reducer.hpp"

#include <deque>
#include <vector>

namespace weir::host {

/// The switch reduces. This sends the slices and says where the results go. It copies out what the
/// transport has not put there. It starts with the hello.
class SwitchReducer : public Reducer {
 public:
  explicit SwitchReducer(const WindowConfig& config)
      : window_(config), gathered_(std::size_t{2} * config.window) {}

  void begin(const Slice& slice) override;

  bool has_begun(std::uint64_t number) const override { return window_.has_begun(number); }

  void replace(std::uint64_t number, const Slice& slice) override {
    progress(number).slice = slice;
  }

  std::optional<OutgoingMessage> next() override;
  Arrival accept(const IncomingMessage& message) override;

  void complete() override;

  std::uint64_t finished() const override { return window_.finished(); }

  std::size_t bytes_done() const override {
    return under_way_.empty() ? 0 : under_way_.front().bytes_done;
  }

  bool is_idle() const override { return window_.state() == MessageWindow::State::idle; }

  std::string describe() const override { return window_.describe(); }

  const MessageWindow& window() const { return window_; }

 private:
  struct Progress {
    Slice slice;
    std::size_t bytes_done = 0;
  };

  Progress& progress(std::uint64_t work) { return under_way_[work - forgotten_]; }

  void add_data(OutgoingMessage& message, const MessageWindow::Piece& piece);
  std::span<std::uint8_t> place_of(const MessageWindow::Piece& piece);
  void store(const MessageWindow::Piece& piece, std::span<const std::uint8_t> result);
  void forget_finished();

  MessageWindow window_;
  // Of messages whose data are of several tensors, by number mod 2N.
  std::vector<std::vector<std::uint8_t>> gathered_;
  std::deque<Progress> under_way_; // the slices that are not finished
  std::uint64_t forgotten_ = 0;    // slices before them
};

} // namespace weir::host
