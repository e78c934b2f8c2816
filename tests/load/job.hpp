// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/api/group.hpp"
#include "lab.hpp"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace weir::load {

/// The ring's members, one thread each. They all-reduce again and again through the host library
/// and compare every element.
class Job {
 public:
  explicit Job(const Lab& lab);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// All-reduces that every member has finished with exact results.
  std::uint32_t rounds_done() const;

  /// Lets the rounds that have begun finish. Returns what went wrong; empty when nothing did.
  std::string finish();

  std::uint64_t retransmissions() const { return retransmissions_; }

 private:
  void run(const Lab& lab, std::uint16_t rank);
  void reduce(host::Group& group, std::uint16_t rank);
  std::optional<std::uint32_t> next_round(std::uint16_t rank);
  void fail(std::uint16_t rank, const std::string& what);

  std::atomic<std::uint64_t> retransmissions_{0};
  mutable std::mutex mutex_;        // guards all below except the threads
  std::vector<std::uint32_t> done_; // rounds, by rank
  std::uint32_t begun_ = 0;
  bool is_ending_ = false;
  std::string failure_;
  std::vector<std::thread> members_;
};

} // namespace weir::load
