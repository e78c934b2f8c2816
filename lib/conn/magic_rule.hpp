// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/foreign_sessions.hpp"
#include "frame/frame.hpp"
#include "weir/reasons.hpp"

#include <cstdint>
#include <optional>

namespace weir::conn {

/// docs/protocol.md §3, "The magic", for queue pairs between addresses that are not ring neighbours
/// here. They may belong to a ring that this switch had before it was restarted. If the switch
/// forwarded a repeat of a raw FIRST as a duplicate, its raw LAST would then fit the receiver. So
/// an INA header is forwarded only if a hello announced it and another switch has answered that
/// hello; otherwise its queue pair is barred. A hello alone opens nothing: a host that goes back to
/// its hello repeats the hello too. Each port is judged by itself, as between neighbours.
/// One lcore owns an object, for the frames that it receives.
class MagicRule {
 public:
  struct Settings {
    std::uint32_t entries = 0;     // queue pairs remembered, each by port
    std::uint64_t aging = 600'000; // milliseconds of silence after which one is forgotten
    HashKey hash_key;
    ForeignSessions* sessions = nullptr; // shared by the whole switch; outlives the object
  };

  explicit MagicRule(const Settings& settings)
      : settings_(settings), table_(settings.entries, settings.hash_key) {}

  void set_aging(std::uint64_t milliseconds) { settings_.aging = milliseconds; }

  /// Then every frame without an INA header may be forwarded.
  bool remembers_nobody() const { return table_.size() == 0; }

  /// nullopt when the RoCE frame may be forwarded, else the reason to drop it. `now` is in
  /// milliseconds.
  std::optional<DropReason> why_not_forwarded(frame::Frame& frame, std::uint64_t now);

 private:
  enum class State : std::uint8_t {
    announced, // a hello passed
    open,      // the ring's messages may pass
    barred,
  };

  struct QueuePair {
    State state{};
    std::uint64_t last_seen = 0;
  };

  std::uint64_t key_of(const frame::Frame& frame) const;
  QueuePair* find(std::uint64_t key, std::uint64_t now);
  std::optional<std::uint64_t> age_of(const QueuePair& old, std::uint64_t now) const;
  void forget(const QueuePair* known);
  void set(std::uint64_t key, State state, std::uint64_t now);
  State state_after_header(const QueuePair* known, const frame::Frame& frame,
                           const wire::InaHeader& ina);

  Settings settings_;
  BucketTable<QueuePair> table_;
};

} // namespace weir::conn
