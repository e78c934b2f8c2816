// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/api/group.hpp"
#include "host/base/group_options.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string_view>

namespace weir::host {

class Device;
class FormingThread;
class FrameIo;
struct GroupOpening;

/// A group that a thread of its own forms, while its callers do other things. Any thread may use
/// it. In a child made by fork it does nothing: calls throw, the destructor ends nothing.
class Forming {
 public:
  /// Opens the device and calls the all-gather, if the options have one; the rest is the thread's.
  /// Throws what Group's constructor throws.
  Forming(const GroupOptions& options, Device& device);
  /// The software transport over other frames.
  Forming(const GroupOptions& options, std::unique_ptr<FrameIo> frames);
  /// Aborts what is not done, and a group that nobody has taken. Then nothing of it is left.
  ~Forming();
  Forming(Forming&&) noexcept;
  Forming(const Forming&) = delete;
  Forming& operator=(const Forming&) = delete;

  /// True once the group is formed. Throws the Error for which it is not. Never blocks.
  bool test() const;
  /// The same, after `timeout` at most, which may be milliseconds::max().
  bool wait_for(std::chrono::milliseconds timeout) const;
  /// The group, once. nullopt: it is not formed yet. Throws Error as test() does, and
  /// std::invalid_argument when the group was taken already.
  std::optional<Group> take();
  /// Ends it on all ranks that this one has met: Error (aborted) about this rank, which tells why
  /// if it is given. A group that is formed and not taken is aborted. Never blocks.
  void abort(std::string_view why = {});
  /// For poll(2): readable once it is done, for ever. Owned by this object. Throws Error.
  int descriptor();

 private:
  explicit Forming(GroupOpening opening);

  std::unique_ptr<FormingThread> thread_; // null: moved from
};

} // namespace weir::host
