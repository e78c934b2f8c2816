// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace weir::ethdev {

/// EAL does not start. what() has the cause in words, as far as it can be found, and the arguments:
/// EAL's own error is often another one's ("Success" when another process has its files).
class EalError : public std::runtime_error {
 public:
  enum class Fault : std::uint8_t { arguments, machine };

  EalError(const std::string& what, Fault fault) : std::runtime_error(what), fault_(fault) {}

  /// Whether an argument is one that EAL does not know or allow.
  bool is_mistake() const { return fault_ == Fault::arguments; }

 private:
  Fault fault_;
};

/// Starts EAL, once in a process. EAL keeps pointers into the arguments: the program's name, then
/// its options. Linking this has EAL start where the kernel's modules are hidden, too: DPDK 22.11
/// gives up there, whether a device needs VFIO or not. Throws EalError.
void start_eal(std::vector<std::string>& arguments);

/// Ends EAL, whose interrupt thread does nothing any more then. All devices are closed.
void end_eal();

} // namespace weir::ethdev
