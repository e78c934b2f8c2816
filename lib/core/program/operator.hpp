// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "op/kernel.hpp"
#include "program/digest.hpp"
#include "program/fold_program.hpp"
#include "program/stand_in.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace weir::program {

/// At most so many ns for a KiB of each rank's payload, by counting lanes and steps: the same on
/// each machine.
double price_of(const Code& code);

/// The same of one step, for a lane; blocks have so many.
double price_of(const Step& step, unsigned unit_lanes);

inline constexpr std::size_t kMaxLoaded = 256; // at once, in a process

/// An operator that has passed its trial. Its kernel may be called as long as it is there.
class Operator {
 public:
  /// Throws TextError for a text that is no program, std::invalid_argument for one that breaks a
  /// rule in its trial, and std::runtime_error when kMaxLoaded are there.
  static std::shared_ptr<const Operator> load(std::string_view text);

  /// Of each kCheckEvery packets that `stand_in` folds, the loops fold one too.
  Operator(FoldProgram program, const Digest& digest, const StandIn& stand_in = {});
  ~Operator();
  Operator(const Operator&) = delete; // its kernel knows its address
  Operator& operator=(const Operator&) = delete;

  /// For one packet, as FoldProgram::reduce.
  op::ReduceKernel kernel() const { return kernel_; }

  const FoldProgram& program() const { return program_; }

  const Code& code() const { return program_.code(); }

  const std::string& name() const { return code().name; }

  const Digest& digest() const { return digest_; }

  static constexpr std::uint32_t kCheckEvery = 4096; // packets

  /// Whether a kernel folds, and not the loops.
  bool has_kernel() const { return stand_in_ != nullptr && !disagrees(); }

  /// Whether the stand-in and the loops gave other bits, in the trial or for a packet. From then on
  /// the loops fold.
  bool disagrees() const { return disagrees_.load(std::memory_order_relaxed); }

  /// Packets whose fold was counted, and how many of them have a flag: for people.
  struct Use {
    std::uint64_t packets = 0;
    std::uint64_t flagged = 0;
  };

  Use use() const {
    return {packets_.load(std::memory_order_relaxed), flagged_.load(std::memory_order_relaxed)};
  }

  /// A packet's fold, for use(). Returns whether it has a flag. Any thread may count.
  bool count(std::span<const std::uint8_t> result) const;

  double price() const { return price_; }

  static constexpr std::uint32_t kTimeEvery = 16; // packets

  /// What a packet of each of so many ranks takes, in ns, as it is measured at load and in service.
  /// For shares of time: it differs from run to run.
  std::uint64_t measured_ns(std::size_t ranks, std::size_t bytes) const {
    const double price = measured_.load(std::memory_order_relaxed);
    return static_cast<std::uint64_t>(price * static_cast<double>(ranks * bytes) / 1024);
  }

 private:
  friend struct OperatorPlace; // which calls fold()

  void fold(std::byte* out, const std::byte* const* inputs, unsigned count, std::size_t bytes,
            op::Copies copies) const;
  void fold_once(std::byte* out, const std::byte* const* inputs, unsigned count, std::size_t bytes,
                 op::Copies copies) const;
  void note_time(double ns) const;
  void fold_twice(std::byte* out, const std::byte* const* inputs, unsigned count, std::size_t bytes,
                  op::Copies copies) const;

  FoldProgram program_;
  Digest digest_;
  double price_;
  mutable std::atomic<double> measured_; // ns for a KiB and rank
  op::ReduceKernel stand_in_;
  mutable std::atomic<std::uint32_t> turn_ = 0; // packets, about: threads may share them
  mutable std::atomic<bool> disagrees_ = false;
  mutable std::atomic<std::uint64_t> packets_ = 0;
  mutable std::atomic<std::uint64_t> flagged_ = 0;
  std::size_t place_ = 0; // of its kernel
  op::ReduceKernel kernel_ = nullptr;
};

} // namespace weir::program
