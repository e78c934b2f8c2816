// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/stream.hpp"
#include "host/nccl/abi.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::nccl_check {

using Handle = std::array<char, nccl::kHandleBytes>;

struct Place {
  std::uint32_t rank;
  std::uint32_t ranks;
};

/// What NCCL's bootstrap does: every rank gives its handle, and gets all. Over TCP, at rank 0. Who
/// can reach it may give one: as with NCCL, the network is trusted.
///
/// A rank says who it is as soon as it comes, so that one that dies before it has a handle is
/// missed at once.
class MeetingPlace {
 public:
  /// Throws std::runtime_error: nobody can listen there.
  MeetingPlace(const host::Endpoint& at, std::uint32_t ranks);

  std::uint16_t port() const { return host::port_of(listener_); }

  /// Answers all when each has come, when one says that it cannot, or at the deadline.
  void serve(host::Deadline deadline);

 private:
  struct Guest {
    host::FramedStream stream;
    std::optional<std::uint32_t> rank; // once it has said so
    bool is_answered = false;
  };

  void hear(Guest& guest);
  void take(Guest& guest, const host::ControlFrame& frame);
  void admit(Guest& guest, Place place);
  std::size_t ranks_here() const;
  void look_for_guests();
  std::string absent() const;
  void answer();
  bool all_know() const;

  host::Socket listener_;
  std::vector<std::optional<Handle>> handles_; // by rank
  std::vector<Guest> guests_;
  std::string failure_; // empty: none
};

/// One rank's side of it.
class Meeting {
 public:
  /// Tries until the deadline. Throws std::runtime_error: nobody listens there.
  Meeting(const host::Endpoint& at, Place own, host::Deadline deadline);

  /// By rank. Throws std::runtime_error with what the meeting place says: who has not come, or
  /// cannot.
  std::vector<Handle> all_gather(const Handle& own);
  /// This rank cannot, and the others need not wait for it.
  void decline(std::string_view why);

 private:
  Place own_;
  host::Deadline deadline_; // of rank 0's answer
  host::FramedStream stream_;
};

} // namespace weir::nccl_check
