// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// A manager's loop with two hosts at one switch, a store and an outside that note what comes.

#include "jobs/loop.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace weir::jobs::manager_fixture {

inline const Caller kOperator{.name = "", .is_operator = true};

/// Two hosts at one switch.
inline Site make_site() {
  plan::Topology topology({"host0", "host1"}, {"leaf"});
  const plan::LinkTraits traits{.bits_per_second = 100'000'000'000, .latency_ns = 1000};
  for (const char* const host : {"host0", "host1"}) {
    topology.connect(topology.find(host), topology.find("leaf"), traits);
  }
  Site site(std::move(topology));
  site.fabric = "lab";
  site.ports.assign(site.topology().links().size(), "p");
  for (const auto& [host, address] : {std::pair{"host0", "10.0.0.1"}, {"host1", "10.0.0.2"}}) {
    const plan::VertexId vertex = site.topology().find(host);
    const plan::LinkId link = site.topology().outgoing(vertex).front();
    site.endpoints[*wire::parse_ip(address)] = {vertex, {0, plan::Topology::reverse_of(link)}};
  }
  return site;
}

class FakeStore : public store::Store {
 public:
  std::optional<std::vector<store::Item>> read_all() override { return items; }

  std::optional<std::string> read(const std::string&) override { return ""; }

  store::Written write(std::span<const store::Change> changes) override {
    if (changes.size() == 1 && changes.front().key == std::exchange(unanswered, "")) {
      return store::Written::lost;
    }
    for (const store::Change& change : changes) {
      if (answer == store::Written::done) {
        written[change.key] = change.value.value_or("");
      }
      longest = std::max(longest, change.value.value_or("").size());
      if (change.key == "fabric" && answer == store::Written::done) {
        fabric.ParseFromString(*change.value);
      }
    }
    ++writes;
    return answer;
  }

  store::Leadership leadership() override { return lead; }

  store::Written answer = store::Written::done;
  store::Leadership lead;
  std::string unanswered; // the next write, if it is of this key alone
  std::vector<store::Item> items;
  v1::FabricRecord fabric;                    // as it was last written
  std::map<std::string, std::string> written; // by key, the last; empty: it is gone
  std::size_t longest = 0;
  int writes = 0;
};

/// Switches that answer at once, and what owners are told.
class FakeOutside : public Outside {
 public:
  void claim(SwitchIndex, const v1::ClaimFabricRequest& request) override {
    terms.emplace_back(request.term().epoch(), request.term().number());
  }

  void apply(SwitchIndex at, const v1::ApplyRingsRequest& request) override {
    applied[at] = request;
  }

  void remove(SwitchIndex at, const v1::RemoveRingsRequest& request) override {
    removed[at] = request;
  }

  void watch(SwitchIndex at, const v1::WatchSwitchRequest& request) override {
    watched[at] = request;
  }

  void tell(CallId, const v1::JobEvent&) override {}

  void end(CallId, const Outcome& outcome) override { ended = outcome; }

  void note(const std::string& kind, const std::string& sentence) override {
    notes[kind] = sentence;
  }

  void stop(const std::string& why) override { stopped = why; }

  void begin_again(const std::string& why) override { begins_again = why; }

  std::map<SwitchIndex, v1::ApplyRingsRequest> applied; // the last
  std::map<SwitchIndex, v1::RemoveRingsRequest> removed;
  std::map<SwitchIndex, v1::WatchSwitchRequest> watched;
  std::optional<Outcome> ended;
  std::map<std::string, std::string> notes; // by kind, the last
  std::string stopped;
  std::string begins_again;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> terms; // by which switches were claimed
};

class ManagerLoop : public testing::Test {
 protected:
  explicit ManagerLoop(Site site = make_site())
      : site_(std::move(site)), loop_(site_, store_, outside_, {"mgr1", {1, 7}}) {
    loop_.begin(now_);
    v1::ClaimFabricResponse claimed;
    claimed.set_boot("boot");
    loop_.on_claimed(0, {}, claimed, now_);
    v1::SwitchSeen seen;
    seen.set_boot("boot");
    seen.mutable_room()->set_rings(4);
    seen.mutable_room()->set_members(16);
    seen.mutable_room()->set_frames(1 << 16);
    loop_.on_seen(0, seen, now_);
    now_ += 10'000; // new leaders wait for their switches
    loop_.on_seen(0, seen, now_);
  }

  static v1::HoldJobRequest request() {
    v1::HoldJobRequest request;
    request.set_request_id(std::string(16, 'r'));
    request.set_window(8);
    request.set_message_bytes(4096);
    for (const char* const address : {"10.0.0.1", "10.0.0.2"}) {
      request.add_members()->add_addresses(address);
    }
    return request;
  }

  std::uint64_t hold() {
    loop_.on_hold(1, kOperator, request(), now_);
    return loop_.records().empty() ? 0 : loop_.records().begin()->first;
  }

  Code code_of_end(std::uint64_t job) {
    try {
      loop_.end_job(kOperator, job, "", now_);
      return Code::ok;
    } catch (const Loop::Refused& refused) {
      return refused.code();
    }
  }

  Time now_ = 1;
  const Site site_;
  FakeStore store_;
  FakeOutside outside_;
  Loop loop_;
};

} // namespace weir::jobs::manager_fixture
