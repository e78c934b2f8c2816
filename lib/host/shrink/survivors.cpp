// SPDX-License-Identifier: BSD-3-Clause
#include "host/shrink/survivors.hpp"

#include "host/base/control_note.hpp"
#include "host/rendezvous/joining.hpp"
#include "host/shrink/liveness_probe.hpp"
#include "host/shrink/shrink_leader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <thread>
#include <utility>

namespace weir::host {
namespace {

// A process that ends closes one descriptor after the other, and its listener may be the last.
constexpr auto kClosingTime = std::chrono::milliseconds(200);
constexpr auto kLeaderSlack = std::chrono::seconds(1); // more time for the rank that leads

/// One rank's way to the rank that leads.
class Search {
 public:
  Search(GroupHistory& history, const ShrinkPlan& plan)
      : history_(history), plan_(plan), deadline_(deadline_after(Clock::now(), plan.timeout)) {}

  Survivors run();

 private:
  void probe_all_below();
  std::vector<Endpoint> endpoints_of(std::uint16_t member) const;
  bool is_turned_away_by(std::uint16_t member) const;
  std::optional<std::uint16_t> lowest_alive();
  std::optional<Survivors> follow(std::uint16_t leader);
  std::optional<ShrinkMembership> await_membership(FramedStream& stream,
                                                   std::uint16_t leader) const;
  void check(const ShrinkMembership& membership, std::uint16_t leader) const;
  [[noreturn]] void give_up_on(std::uint16_t leader);
  std::chrono::milliseconds time_left() const;

  GroupHistory& history_;
  const ShrinkPlan& plan_;
  const Deadline deadline_;
  /// Of the members with lower ranks, but for those that ended.
  std::map<std::uint16_t, LivenessProbe> below_;
  std::set<std::uint16_t> ended_;
  std::set<std::string> strangers_; // endpoints where we were turned away
};

std::chrono::milliseconds Search::time_left() const {
  return std::chrono::milliseconds(milliseconds_left(deadline_));
}

Survivors Search::run() {
  while (true) {
    probe_all_below();
    const std::optional<std::uint16_t> leader = lowest_alive();
    if (!leader) {
      std::set<std::uint16_t> silent;
      for (const auto& [rank, liveness] : below_) {
        silent.insert(rank);
      }
      return ShrinkLeader(history_, plan_, {ended_, silent}, deadline_).run();
    }
    if (std::optional<Survivors> survivors = follow(*leader)) {
      return std::move(*survivors);
    }
    if (Clock::now() >= deadline_) {
      give_up_on(*leader);
    }
    std::this_thread::sleep_for(kPollPeriod);
  }
}

/// It closed our connection, and there is no time left to find another one.
void Search::give_up_on(std::uint16_t leader) {
  LivenessProbe liveness(endpoints_of(leader), silence_limit(history_, plan_.timeout));
  const Deadline closed = Clock::now() + kClosingTime;
  for (auto state = liveness.check();
       state == LivenessProbe::State::trying ||
       (state == LivenessProbe::State::alive && Clock::now() < closed);
       state = liveness.check()) {
    std::this_thread::sleep_for(kPollPeriod);
  }
  if (liveness.check() == LivenessProbe::State::ended) {
    throw plan_.error(ErrorCode::peer_died, {leader}, "ended while it led");
  }
  throw plan_.error(ErrorCode::rendezvous_timeout, {leader},
                    fmt::format("lives and did not come within {} ms", plan_.timeout.count()));
}

/// All at the same time, because one that does not answer costs seconds.
void Search::probe_all_below() {
  below_.clear();
  for (const std::uint16_t member : plan_.members) {
    if (member < history_.self.rank && !ended_.contains(member)) {
      below_.try_emplace(member, endpoints_of(member), silence_limit(history_, plan_.timeout));
    }
  }
}

/// Where no other job listens. A port that another one has got is not the rank's any more.
std::vector<Endpoint> Search::endpoints_of(std::uint16_t member) const {
  std::vector<Endpoint> endpoints = history_.endpoints[member];
  std::erase_if(endpoints,
                [&](const Endpoint& endpoint) { return strangers_.contains(endpoint.text()); });
  return endpoints;
}

/// Who turned us away has proved nothing, so the rank may live: it counts as silent.
bool Search::is_turned_away_by(std::uint16_t member) const {
  return endpoints_of(member).size() < history_.endpoints[member].size();
}

/// None if all are known to have ended or do not answer.
std::optional<std::uint16_t> Search::lowest_alive() {
  for (auto entry = below_.begin(); entry != below_.end();) {
    const LivenessProbe::State state = entry->second.check();
    if (state == LivenessProbe::State::alive) {
      return entry->first;
    }
    if (state == LivenessProbe::State::trying && Clock::now() < deadline_) {
      std::this_thread::sleep_for(kPollPeriod);
    } else if (state == LivenessProbe::State::ended && !is_turned_away_by(entry->first)) {
      ended_.insert(entry->first);
      entry = below_.erase(entry);
    } else {
      ++entry;
    }
  }
  return std::nullopt;
}

/// None when the connection closes, as the leader has ended or follows another one; or when it is
/// another job's.
std::optional<Survivors> Search::follow(std::uint16_t leader) {
  auto [endpoint, connection] = below_.at(leader).take();
  below_.clear();
  auto [stream, is_refused] = join_on(std::move(connection), {.claim = history_.self,
                                                              .credentials = history_.credentials,
                                                              .endpoints = {endpoint},
                                                              .timeout = time_left(),
                                                              .keep_alive = history_.keep_alive,
                                                              .leader = plan_.sender(leader)});
  if (is_refused) {
    strangers_.insert(endpoint.text());
  }
  if (!stream) {
    return std::nullopt;
  }
  const std::optional<ShrinkMembership> membership = await_membership(*stream, leader);
  if (!membership) {
    return std::nullopt;
  }
  check(*membership, leader);
  Survivors survivors{.membership = *membership, .streams = {}};
  survivors.streams.resize(membership->members.size());
  survivors.streams[0] = std::move(stream);
  return survivors;
}

std::optional<ShrinkMembership> Search::await_membership(FramedStream& stream,
                                                         std::uint16_t leader) const {
  const Deadline deadline =
      deadline_after(deadline_after(Clock::now(), plan_.timeout), kLeaderSlack);
  while (true) {
    if (const std::optional<ControlFrame> frame = stream.receive()) {
      if (frame->kind == code(ControlKind::failed)) {
        throw decode_error(frame->body, plan_.sender(leader));
      }
      std::optional<ShrinkMembership> membership = frame->kind == code(ControlKind::membership)
                                                       ? decode_membership(frame->body)
                                                       : std::nullopt;
      if (!membership) {
        throw plan_.error(ErrorCode::transport_failure, {leader},
                          fmt::format("sent a frame of kind {}; due is a roster", frame->kind));
      }
      return membership;
    }
    if (!stream.is_open()) {
      return std::nullopt;
    }
    if (Clock::now() >= deadline) {
      throw plan_.error(ErrorCode::rendezvous_timeout, {leader},
                        fmt::format("leads and said nothing within {} ms", plan_.timeout.count()));
    }
    stream.wait(deadline);
  }
}

/// A rank that an earlier shrink left out may lead ranks that did not take part in it.
void Search::check(const ShrinkMembership& membership, std::uint16_t leader) const {
  const auto is_ours = [&](std::uint16_t rank) {
    return std::ranges::binary_search(plan_.members, rank);
  };
  const auto stranger = std::ranges::find_if_not(membership.members, is_ours);
  if (membership.members.empty() || membership.members.front() != leader ||
      stranger != membership.members.end() ||
      !std::ranges::binary_search(membership.members, history_.self.rank)) {
    throw plan_.error(ErrorCode::mismatch, {leader},
                      "leads ranks that are not all of this group, or without this one");
  }
}

} // namespace

Error ShrinkPlan::error(ErrorCode code, const std::set<std::uint16_t>& about,
                        std::string_view text) const {
  std::vector<std::uint16_t> ranks;
  for (std::uint16_t rank = 0; rank < members.size(); ++rank) {
    if (about.contains(members[rank])) {
      ranks.push_back(rank);
    }
  }
  if (ranks.empty()) {
    return {code, std::nullopt, fmt::format("shrink: a rank that was left out before {}", text)};
  }
  return {code, ranks.front(), fmt::format("shrink: {} {}", named(ranks), text)};
}

Sender ShrinkPlan::sender(std::uint16_t leader) const {
  const auto place = std::ranges::lower_bound(members, leader) - members.begin();
  return {static_cast<std::uint16_t>(place), static_cast<std::uint16_t>(members.size())};
}

Survivors find_survivors(GroupHistory& history, const ShrinkPlan& plan) {
  if (plan.members.size() == 1) { // formed as a group of one: nobody to look for
    Survivors alone{.membership = {plan.members, history.left_out}, .streams = {}};
    alone.streams.emplace_back();
    return alone;
  }
  try {
    return Search(history, plan).run();
  } catch (const Error&) {
    throw;
  } catch (const std::runtime_error& error) { // this process has no descriptor left
    throw plan.error(ErrorCode::transport_failure, {history.self.rank}, error.what());
  }
}

} // namespace weir::host
