// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "op/kernel.hpp"
#include "program/digest.hpp"
#include "program/fold_program.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace weir::program {

inline constexpr std::size_t kMaxLoaded = 256; // at once, in a process

/// An operator that has passed its trial. Its kernel may be called as long as it is there.
class Operator {
 public:
  /// Throws TextError for a text that is no program, std::invalid_argument for one that breaks a
  /// rule in its trial, and std::runtime_error when kMaxLoaded are there.
  static std::shared_ptr<const Operator> load(std::string_view text);

  Operator(FoldProgram program, const Digest& digest);
  ~Operator();
  Operator(const Operator&) = delete; // its kernel knows its address
  Operator& operator=(const Operator&) = delete;

  /// For one packet, as FoldProgram::reduce.
  op::ReduceKernel kernel() const { return kernel_; }

  const FoldProgram& program() const { return program_; }

  const Code& code() const { return program_.code(); }

  const std::string& name() const { return code().name; }

  const Digest& digest() const { return digest_; }

  /// At most so many ns for a KiB of each rank's payload, by counting lanes and steps: the same on
  /// each machine.
  double price() const { return price_; }

 private:
  FoldProgram program_;
  Digest digest_;
  double price_;
  std::size_t place_ = 0; // of its kernel
  op::ReduceKernel kernel_ = nullptr;
};

} // namespace weir::program
