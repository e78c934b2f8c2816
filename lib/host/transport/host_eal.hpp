// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/fork_watch.hpp"
#include "host/transport/frame_io.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace weir::host {

/// EAL for a process that owns one port: ordinary memory, no PCI scan, no lcore of its own, any of
/// the caller's CPUs. It is up while this object lives, which outlives every port; once per
/// process. At the end it removes its runtime directory, and those of killed workers. Throws
/// Error.
class HostEal {
 public:
  HostEal();
  ~HostEal();
  HostEal(const HostEal&) = delete;
  HostEal& operator=(const HostEal&) = delete;

 private:
  const Birthplace birthplace_;
  std::vector<std::string> arguments_; // EAL keeps pointers into them
  std::string runtime_directory_;
};

/// Frames by one DPDK port: an EthdevIo, with its arguments and errors. Needs a HostEal. In a build
/// without DPDK it always throws.
std::unique_ptr<FrameIo> open_ethdev(const std::string& devargs, std::chrono::milliseconds timeout);

} // namespace weir::host
