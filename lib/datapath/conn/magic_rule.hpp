// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/foreign_sessions.hpp"
#include "conn/port_tables.hpp"
#include "frame/frame.hpp"
#include "weir/reasons.hpp"

#include <array>
#include <cstdint>
#include <optional>

namespace weir::conn {

/// docs/protocol.md §3, "The magic", for queue pairs between addresses that are not ring neighbours
/// here. They may belong to a ring that this switch had before it was restarted. If the switch
/// forwarded a repeat of a raw FIRST as a duplicate, its raw LAST would then fit the receiver. So
/// an INA header is forwarded only if a hello announced it and another switch has answered that
/// hello; otherwise its queue pair is barred. A hello alone opens nothing: a host that goes back to
/// its hello repeats the hello too.
///
/// A queue pair is known by the port that its packets come by. So frames from other ports, whatever
/// they say, neither bar it nor open it, and they take no places from those of its port. When a
/// port's places are all taken, by barred queue pairs and open ones, it can no longer be said which
/// of its queue pairs are barred: then the rest of every message that it has not seen begin is
/// dropped there.
///
/// One lcore owns an object, for the frames that it receives.
class MagicRule {
 public:
  struct Settings {
    std::uint32_t entries = 0; // queue pairs remembered, of all ports together
    std::uint16_t ports = 0;
    std::uint64_t aging = 600'000; // milliseconds of silence after which one is forgotten
    HashKey hash_key;
    ForeignSessions* sessions = nullptr; // shared by the whole switch; outlives the object
  };

  explicit MagicRule(const Settings& settings)
      : settings_(settings), tables_(settings.entries, settings.ports, settings.hash_key) {}

  void set_aging(std::uint64_t milliseconds) { settings_.aging = milliseconds; }

  /// Then every frame without an INA header that comes by this port may be forwarded.
  bool remembers_nobody(std::uint16_t port) const { return (remembering_ & bit_of(port)) == 0; }

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

  using Table = BucketTable<QueuePair>;

  static std::uint64_t bit_of(std::uint16_t port) { return std::uint64_t{1} << port % kMostPorts; }

  std::optional<DropReason> judge(frame::Frame& frame, const wire::InaHeader* ina,
                                  std::uint64_t now);
  void note_what_is_left(std::uint16_t port);
  std::uint64_t key_of(const frame::Frame& frame) const;
  QueuePair* find(Table& table, std::uint64_t key, std::uint64_t now) const;
  std::optional<std::uint64_t> age_of(const QueuePair& old, std::uint64_t now) const;
  void set(Table& table, std::uint64_t key, State state, const frame::Frame& frame,
           std::uint64_t now);
  State state_after_header(const QueuePair* known, const frame::Frame& frame,
                           const wire::InaHeader& ina, std::uint64_t now);
  bool may_be_barred(std::uint16_t port, std::uint64_t now);

  Settings settings_;
  PortTables<QueuePair> tables_;
  // By port, in milliseconds: until then a queue pair may be barred that found no place. 0: none.
  std::array<std::uint64_t, kMostPorts> overfull_until_{};
  std::uint64_t remembering_ = 0; // a bit for each port of which anything is remembered
};

} // namespace weir::conn
