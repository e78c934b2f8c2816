// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// One rank's part in a job: collectives over a ring of RoCEv2 connections that a Weir switch
/// aggregates (docs/protocol.md §7).

#include "host/base/call.hpp"
#include "host/base/error.hpp"
#include "host/base/group_options.hpp"
#include "host/collective/scaling.hpp"
#include "weir/ina.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::host {

class Device;
class FrameIo;
class GroupDriver;
class Region;
class SparseOutcome;
class Transport;
struct RegionOptions;
struct Request;
struct SparseTensor;
struct SplitPlace;

enum class Algorithm : std::uint8_t {
  in_switch,
  ring,
  alone, // of one rank: nothing travels
  local, // of ranks that share one NIC: nothing leaves the host
};

/// "switch", "ring", "alone" or "local".
std::string_view name_of(Algorithm algorithm);

/// Counts of this rank since the beginning.
struct GroupStatistics {
  std::uint64_t messages_sent = 0;
  std::uint64_t results_received = 0;
  std::optional<std::uint64_t> retransmitted_packets; // none over verbs: only the NIC knows
  std::optional<std::uint64_t> ack_timeouts;          // none over verbs
  std::uint64_t frames_lost_on_purpose = 0;
  std::uint64_t callers_turned_away = 0; // on rank 0, while the ranks met
};

/// The first defect of the options: what was found and what is allowed. Empty when there is none.
std::string find_defect(const GroupOptions& options);

/// The same for what they say of the device.
std::string find_device_defect(const GroupOptions& options);

/// A call under way. The group owns its buffers until it is done.
class Pending {
 public:
  Pending() = default;

  /// True once the result is complete; the caller then owns the buffers again. Throws the Error
  /// that ended it. Drives the group's calls for a step if no other thread does; never waits.
  bool test();
  /// Returns when test() would be true, or throws its error.
  void wait();
  /// Like wait, but for at most `timeout`, which may be milliseconds::max(). False after the
  /// timeout.
  bool wait_for(std::chrono::milliseconds timeout);
  /// Has the callback called once test() would be true or throw: now, or by a thread that drives
  /// the group then. Throws std::invalid_argument if there is one.
  void on_done(std::function<void(const std::optional<Error>&)> callback);
  /// Whether test() would be true or throw. Does nothing else.
  bool is_over() const;
  /// True: it is over, and its buffers are the caller's. If this call has ended it, test() and
  /// wait() throw Error (cancelled), and the other ranks get this one's part. False: a part of it
  /// has left, or may have, and it goes on.
  bool cancel();
  /// Bytes of the result that are here; 0 while calls before it are under way.
  std::size_t bytes_done() const;
  /// The ranks that are late, once this one has waited for the timeout: "rank 3 has not made call
  /// 7". Empty when none are, or nobody has looked yet.
  std::string waits_for() const;

 private:
  friend class Group;

  explicit Pending(std::shared_ptr<Request> request) : request_(std::move(request)) {}

  std::shared_ptr<Request> request_;
};

/// One rank's part in a job. Threads may share it and its Pendings; a thread that waits does not
/// block others. If it is destroyed during calls, they end with peer_died and its own rank. In a
/// child made by fork it does nothing: calls throw, the destructor ends nothing, and no connection
/// stays open there. The child may open a group of its own.
class Group {
 public:
  /// Meets the other ranks, connects to the neighbours and says hello to the switch. Throws
  /// std::invalid_argument with the text of find_defect, or Error, also when there is no memory for
  /// the slots.
  explicit Group(const GroupOptions& options);
  /// The same over a device that others may share.
  Group(const GroupOptions& options, Device& device);
  /// The software transport over other frames, such as those of a DPDK port.
  Group(const GroupOptions& options, std::unique_ptr<FrameIo> frames);
  /// Over a transport of the caller's, whatever the options say of the device.
  Group(const GroupOptions& options, std::unique_ptr<Transport> transport);
  /// Says farewell and stays for ranks that still need an acknowledgement, until every rank has
  /// closed or one has failed, for at most `farewell`. Rank 0 stays two seconds longer, because it
  /// tells the others for whom they wait.
  ~Group();
  Group(Group&&) noexcept;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  /// Forms a group of the ranks that live. Every one of them calls it; who they are, they find out
  /// by themselves. Ends this group's calls, if they have not ended. Of the options, rank, world
  /// and how the ranks meet stay as they were or follow from who lives. Throws
  /// std::invalid_argument, also when this group was shrunk already, or Error; after an Error it
  /// may be called again.
  Group shrink(const GroupOptions& options, Device& device);
  /// The software transport over other frames.
  Group shrink(const GroupOptions& options, std::unique_ptr<FrameIo> frames);

  /// Forms a group of ranks of this one, which goes on. Every rank calls it, as a collective, each
  /// with its own place (group_split.hpp). Of the options, rank, world and how the ranks meet
  /// follow from this group. nullopt: this rank's place is in no part. Throws
  /// std::invalid_argument or Error.
  std::optional<Group> split(const SplitPlace& place, const GroupOptions& options, Device& device);
  /// The software transport over other frames.
  std::optional<Group> split(const SplitPlace& place, const GroupOptions& options,
                             std::unique_ptr<FrameIo> frames);

  /// Starts a collective and returns (weir/weir.h says what each does). Several may be under way;
  /// they are done in order. Every rank makes the same calls in the same order. Throws
  /// std::invalid_argument for a pair that is not is_reducible, a root that is no rank, and 2^63
  /// bytes or more; else Error.
  Pending start(const void* in, void* out, const Call& call);

  /// Throws what start() does for a call that this group can never make. So do the next two, of
  /// start_by_operator and start_strided.
  void check(const Call& call) const;
  void check_by_operator(const Call& call, std::size_t number) const;
  void check_strided(const Call& call, std::size_t stride) const;

  /// One of several tensors that are reduced together. `count` in elements.
  struct Part {
    const void* in = nullptr;
    void* out = nullptr; // may be `in`
    std::size_t count = 0;
  };

  /// All-reduces the tensors as if they lay one after the other; for a few small ones cheaper than
  /// a call for each. `call.count` is not used.
  Pending start_all_reduce(std::span<const Part> parts, Call call);

  /// A sparse all-reduce, and what becomes of it, which may outlive the group.
  struct SparseCall {
    Pending pending;
    std::shared_ptr<const SparseOutcome> result;
  };

  /// Sums, averages, ors and xors of tensors that are 0 where a rank has nothing. Of `call`, only
  /// type, operation and finish are used. A factor is as in start_scaled.
  SparseCall start_sparse(const SparseTensor& tensor, Call call,
                          const std::optional<Factor>& factor = std::nullopt);

  /// An all-reduce, a reduce or a reduce-scatter of `call.count` bytes by the options' operator of
  /// that number. A share of a reduce-scatter is a tensor of its own. Where no switch folds: an
  /// all-gather, and the fold on each rank. Throws std::invalid_argument for another call.
  Pending start_by_operator(const void* in, void* out, const Call& call, std::size_t number);

  /// A sum of inputs that each rank multiplies by a factor of its own first.
  Pending start_scaled(const void* in, void* out, const Call& call, const Factor& factor);

  /// An all-gather whose result, or a reduce-scatter whose input, has gaps: from one rank's
  /// `call.count` elements to the next one's are `stride`. A reduce-scatter packs them first.
  Pending start_strided(const void* in, void* out, const Call& call, std::size_t stride,
                        const std::optional<Factor>& factor = std::nullopt);

  Pending start_all_reduce(const void* in, void* out, std::size_t count, DataType type,
                           Operation operation);
  /// The same, and waits.
  void all_reduce(const void* in, void* out, std::size_t count, DataType type, Operation operation);

  /// Drives the group for a step if no other thread does, as Pending::test without a Pending.
  /// Throws the Error that ended the group.
  void progress();

  /// Ends this rank's calls and the other ranks' with them: Error (aborted) about this rank. Never
  /// blocks. The error tells why, if it is given. Throws Error in a child made by fork.
  void abort(std::string_view why = {});

  std::uint16_t rank() const;
  std::uint16_t world() const;
  std::uint32_t epoch() const;
  /// As the group was formed.
  const GroupOptions& options() const;
  /// The rank's number in the group that was shrunk; in a group that was formed, the rank itself.
  std::uint16_t parent_rank(std::uint16_t rank) const;
  /// Of the ranks that share this one's NIC, the lowest: for them it reaches the network. The rank
  /// itself if it shares its NIC with none.
  std::uint16_t leader(std::uint16_t rank) const;
  /// Where the other ranks reach this one's host, as a number. Empty for a group of one.
  std::string address() const;
  Algorithm algorithm() const;
  /// Why the hosts reduce. Empty when they do not.
  std::string fallback_reason() const;
  /// Ids of the rings that carry the calls, in the options' order. Empty when no switch reduces.
  std::vector<std::uint32_t> rings() const;
  /// Why others of the options' rings do not. Empty when they all do, or no switch reduces.
  std::string missing_rings() const;
  /// Which of the options' operators no switch folds by, and why. Empty when they all are, or no
  /// switch was asked.
  std::string missing_operators() const;
  GroupStatistics statistics() const;
  /// Makes a region of the ranks' memory. Every rank calls it, as a collective, and it waits until
  /// all members have said hello. The memory stays where it is until the region is closed. Throws
  /// std::invalid_argument or Error; after Error (no_region) the group goes on.
  std::shared_ptr<Region> form_region(std::span<std::uint8_t> memory, const RegionOptions& options,
                                      Device& device);
  /// Ends this rank's part in it. Every rank calls it, as a collective; it waits for the others, at
  /// most for `farewell`.
  void close_region(Region& region);

  /// For poll(2), together with others: readable while a Pending is done and has not been asked
  /// since, or after an error. The group's: not to be read or closed. Throws Error, and
  /// std::invalid_argument if the group has no thread.
  int descriptor() const;

 private:
  friend class Forming;

  Group(std::shared_ptr<GroupDriver> driver, std::vector<std::uint16_t> parent_ranks);

  void gather_notes(const void* in, std::size_t bytes, void* out);

  std::shared_ptr<GroupDriver> driver_;     // null: moved from
  std::vector<std::uint16_t> parent_ranks_; // by rank; empty: the group was formed
};

} // namespace weir::host
