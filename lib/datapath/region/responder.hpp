// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "endpoint/fixed_queue.hpp"
#include "frame/frame.hpp"
#include "region/reader.hpp"
#include "region/spec.hpp"
#include "wire/psn.hpp"
#include "wire/syndrome.hpp"

#include <cassert>
#include <cstdint>

namespace weir::region {

/// A packet of a member's WRITE, or a READ, that is not answered yet.
struct Request {
  frame::Frame* frame = nullptr; // held; nullptr: nobody lacks it, or it is a hello
  std::uint64_t offset = 0;      // in the region
  std::uint32_t psn = 0;
  std::uint16_t missing = 0; // targets that have not acknowledged it
  bool asks = false;         // for an answer
  bool ends = false;         // its message
  bool is_read = false;
};

/// The switch as a responder of one member: which of its packets are taken, what is answered when,
/// and when it is asked for what was lost (rules A1 to A5 of docs/protocol.md §13). A ≤ e.
class Responder {
 public:
  /// The judgement on one packet of a request.
  enum class Verdict : std::uint8_t {
    accept,
    gap,       // above e
    answered,  // below A
    under_way, // A or above, below e
    full,      // the window of held packets
    invalid_request,
    access_error,
  };

  Responder(const RegionSpec& spec, const MemberSpec& member);

  /// A packet with a valid ICRC has come, whatever becomes of it. True: the member has gone back.
  bool hear(std::uint32_t psn);

  /// Of a packet whose opcode is a WRITE's.
  Verdict judge(const frame::Frame& frame, const RegionBirth& birth) const;

  /// Of a READ of a region with views. nullopt: there is not just a RETH behind its BTH.
  Verdict judge_read(const std::optional<endpoint::ReadRequest>& request,
                     const RegionBirth& birth) const;

  /// Of any other request, by its PSN alone.
  Verdict place(std::uint32_t psn) const;

  /// Takes a packet that was judged so. Returns the number of its request.
  std::uint64_t accept(frame::Frame& frame, const RegionBirth& birth, std::uint64_t now);

  /// The same for a READ. Returns as Reader::accept().
  std::optional<std::uint32_t> accept_read(const endpoint::ReadRequest& request,
                                           const RegionBirth& birth, std::uint64_t now);

  /// Takes a READ below A. Returns as Reader::repeat().
  std::optional<std::uint32_t> repeat_read(const endpoint::ReadRequest& request, std::uint64_t now);

  /// The READ packet that is to be answered after so many others, whatever is before it.
  std::optional<Answer> due_read(std::uint32_t after) const { return reader_.due(after); }

  /// Whether nothing is to be answered before the first due_read().
  bool is_turn_of_read() const {
    return is_answering_again() || (!requests_.empty() && requests_.front().is_read);
  }

  bool is_answering_again() const { return reader_.is_answering_again(); }

  /// Whether A is the first PSN of a request.
  bool is_between_requests() const { return reader_.answered_of_oldest() == 0; }

  /// Whether a READ that is remembered has this PSN, and not as its first.
  bool is_inside_read(std::uint32_t psn) const { return reader_.is_inside(psn); }

  /// Counts the first due_read(), whose turn it is, as answered from now on. Returns the MSN of the
  /// answer.
  std::uint32_t answer_read(std::uint64_t now);

  /// Takes the hello, which nobody holds.
  void accept_hello(std::uint64_t now);

  Request& operator[](std::uint64_t number) { return requests_[number]; }

  /// Moves A over what no target lacks. True: the member wants to know.
  bool advance(std::uint64_t now);

  enum class Ask : std::uint8_t { nothing, nak, rnr };

  /// How the member is to be asked now for what is missing, which counts as said.
  Ask ask(std::uint64_t now);

  /// A packet found the window full: the member is asked when half of it has gone.
  void refuse_for_room() { is_full_ = true; }

  /// Whether the member waits, so long that it must hear that the switch lives; it counts as said.
  bool wants_sign(std::uint64_t now);

  /// When ask() may say something; kNever: nothing is missing.
  std::uint64_t ask_timer() const;

  /// When wants_sign() is worth calling.
  std::uint64_t sign_timer() const;

  std::uint32_t unanswered() const { return unanswered_; }

  /// The PSN that an ACK names (A3): of the newest answered WRITE, or one below all READs that the
  /// member may wait for.
  std::uint32_t acknowledged() const;

  std::uint64_t unanswered_reads() const { return reader_.unanswered_reads(); }

  std::uint32_t message_sequence() const { return message_sequence_; }

  /// Packets of WRITEs that are not answered.
  std::size_t held() const { return held_; }

  /// Gives up the oldest such packet. Returns its frame if one is held.
  frame::Frame* give_up() {
    while (requests_.front().is_read) {
      requests_.pop();
    }
    frame::Frame* const frame = requests_.front().frame;
    requests_.pop();
    --held_;
    return frame;
  }

 private:
  /// The WRITE whose packets are arriving.
  struct Message {
    bool is_open = false;
    std::uint64_t offset = 0; // of the next byte, in the region
    std::uint32_t left = 0;   // bytes
  };

  bool may_ask() const;
  void keep_acknowledged_near();

  bool waits() const { return !requests_.empty() || is_answering_again(); }

  Verdict judge_start(const frame::Frame& frame, const RegionBirth& birth) const;
  bool has_fitting_length(const frame::Frame& frame, std::uint64_t left) const;
  void push(const Request& request, std::uint32_t packets, std::uint64_t now);

  bool lacks_packets() const { return expected_ != furthest_; }

  const RegionSpec& spec_;
  const MemberSpec& member_;
  endpoint::FixedQueue<Request> requests_;
  Message message_;
  Reader reader_;
  std::uint32_t expected_;   // e
  std::uint32_t unanswered_; // A
  std::uint32_t furthest_;   // behind the last PSN that was heard of
  std::uint32_t previous_;   // PSN of the packet before
  std::uint32_t
      acknowledged_; // PSN of the newest answered packet of a WRITE, or one below all READs
  std::uint32_t message_sequence_ = 0;
  std::size_t held_ = 0;
  std::uint64_t spoke_ns_ = 0; // the last answer, or the first packet that waits for one
  bool is_full_ = false;
  bool has_gone_back_ = false;         // since it was asked
  std::uint32_t asks_ = 0;             // since the gap was found
  std::uint32_t asked_unanswered_ = 0; // A then
  std::uint64_t asked_ns_ = 0;
};

} // namespace weir::region
