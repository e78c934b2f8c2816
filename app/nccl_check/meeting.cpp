// SPDX-License-Identifier: BSD-3-Clause
#include "nccl_check/meeting.hpp"

#include "output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <set>
#include <span>
#include <stdexcept>
#include <thread>
#include <utility>

namespace weir::nccl_check {
namespace {

using host::Clock;
using host::Deadline;

/// Each begins with a Place.
enum Kind : std::uint8_t {
  comes = 1,
  gives,    // its handle
  declines, // why
  gathered, // all handles
  fails,    // why
};

constexpr std::uint32_t kMostFromGuest = 4096; // bytes of a message

constexpr std::chrono::milliseconds kPause{5};
constexpr std::chrono::milliseconds kBetweenAttempts{100};
constexpr std::chrono::seconds kMostForLateOnes{5}; // who come when all is lost hear why
constexpr std::chrono::seconds kMostForAnswer{5};   // after rank 0 has waited long enough

std::vector<std::uint8_t> body_of(Place place, std::string_view rest) {
  std::vector<std::uint8_t> body(sizeof(place) + rest.size());
  std::memcpy(body.data(), &place, sizeof(place));
  std::ranges::copy(rest, body.begin() + sizeof(place));
  return body;
}

std::string_view rest_of(const host::ControlFrame& frame) {
  return {reinterpret_cast<const char*>(frame.body.data()) + sizeof(Place),
          frame.body.size() - sizeof(Place)};
}

/// For whom or what this rank waits is told once, when it has been long.
class Patience {
 public:
  void tell(std::string_view what) {
    if (!is_told_ && Clock::now() - begin_ > kLong) {
      app::say(fmt::format("weir-nccl-check: {}\n", what));
      is_told_ = true;
    }
  }

 private:
  static constexpr std::chrono::seconds kLong{3};

  Clock::time_point begin_ = Clock::now();
  bool is_told_ = false;
};

/// The ranks begin at about the same time, so nobody may listen yet.
host::Socket connected_to(const host::Endpoint& at, Place own, Deadline deadline) {
  Patience patience;
  while (true) {
    host::ConnectionAttempts attempts({at});
    if (host::Socket socket = attempts.next(deadline)) {
      return socket;
    }
    const std::string why =
        fmt::format("rank 0 does not answer at {}: {}", at.text(), attempts.failures());
    if (Clock::now() >= deadline) {
      throw std::runtime_error(why);
    }
    patience.tell(fmt::format("rank {} waits: {}", own.rank, why));
    std::this_thread::sleep_for(kBetweenAttempts);
  }
}

} // namespace

MeetingPlace::MeetingPlace(const host::Endpoint& at, std::uint32_t ranks)
    : listener_(host::listen_at(at)), handles_(ranks) {}

void MeetingPlace::admit(Guest& guest, Place place) {
  const auto is_taken = [&](const Guest& other) { return other.rank == place.rank; };
  if (place.ranks != handles_.size() || place.rank >= handles_.size()) {
    failure_ = fmt::format("one comes as rank {} of {}; here are {} ranks", place.rank, place.ranks,
                           handles_.size());
  } else if (std::ranges::any_of(guests_, is_taken)) {
    failure_ = fmt::format("two come as rank {}", place.rank);
  }
  guest.rank = place.rank;
}

void MeetingPlace::take(Guest& guest, const host::ControlFrame& frame) {
  Place place{};
  if (frame.body.size() < sizeof(place)) {
    return;
  }
  std::memcpy(&place, frame.body.data(), sizeof(place));
  const std::string_view rest = rest_of(frame);
  if (!guest.rank) {
    admit(guest, place);
  }
  if (!failure_.empty()) {
    return;
  }
  if (frame.kind == declines) {
    failure_ = fmt::format("rank {} cannot: {}", *guest.rank, rest);
  } else if (frame.kind == gives && rest.size() == nccl::kHandleBytes) {
    std::memcpy(handles_[*guest.rank].emplace().data(), rest.data(), rest.size());
  }
}

void MeetingPlace::hear(Guest& guest) {
  guest.stream.read_available();
  if (const auto frame = guest.stream.receive()) {
    take(guest, *frame);
  } else if (!guest.stream.is_open() && guest.rank && failure_.empty()) {
    failure_ = fmt::format("rank {} has gone", *guest.rank);
  }
}

std::string MeetingPlace::absent() const {
  std::vector<std::size_t> ranks;
  for (std::size_t rank = 0; rank < handles_.size(); ++rank) {
    if (!handles_[rank]) {
      ranks.push_back(rank);
    }
  }
  return ranks.empty() ? std::string()
                       : fmt::format("has not come: rank {}", fmt::join(ranks, ", rank "));
}

void MeetingPlace::look_for_guests() {
  if (host::Socket socket = host::accept_waiting(listener_)) {
    guests_.push_back(
        {.stream = host::FramedStream(std::move(socket), kMostFromGuest), .rank = {}});
  }
  for (Guest& guest : guests_) {
    hear(guest);
  }
  std::erase_if(guests_, [](const Guest& guest) { return !guest.rank && !guest.stream.is_open(); });
}

void MeetingPlace::answer() {
  std::string all;
  for (const auto& handle : handles_) {
    all.append(handle ? handle->data() : "", handle ? handle->size() : 0);
  }
  const Place whole{0, static_cast<std::uint32_t>(handles_.size())};
  for (Guest& guest : guests_) {
    if (!guest.is_answered) {
      guest.stream.send(failure_.empty() ? gathered : fails,
                        body_of(whole, failure_.empty() ? all : failure_));
      guest.is_answered = true;
    }
    guest.stream.flush();
  }
}

std::size_t MeetingPlace::ranks_here() const {
  std::set<std::uint32_t> ranks;
  for (const Guest& guest : guests_) {
    if (guest.rank) {
      ranks.insert(*guest.rank);
    }
  }
  return ranks.size();
}

bool MeetingPlace::all_know() const {
  const auto waits = [](const Guest& guest) {
    return !guest.is_answered || (guest.stream.is_open() && guest.stream.has_backlog());
  };
  return ranks_here() == handles_.size() && std::ranges::none_of(guests_, waits);
}

void MeetingPlace::serve(Deadline deadline) {
  Patience patience;
  Deadline end = Deadline::max();
  while (Clock::now() < end && !all_know()) {
    look_for_guests();
    const std::string missing = absent();
    if (failure_.empty() && !missing.empty()) {
      patience.tell(fmt::format("rank 0 waits: {}", missing));
      failure_ = Clock::now() < deadline ? "" : missing;
    } else {
      end = std::min(end, Clock::now() + kMostForLateOnes);
      answer();
    }
    std::this_thread::sleep_for(kPause);
  }
}

Meeting::Meeting(const host::Endpoint& at, Place own, Deadline deadline)
    : own_(own), deadline_(deadline + kMostForAnswer), stream_(connected_to(at, own, deadline)) {
  stream_.send(comes, body_of(own_, {}));
}

std::vector<Handle> Meeting::all_gather(const Handle& own) {
  stream_.send(gives, body_of(own_, {own.data(), own.size()}));
  std::optional<host::ControlFrame> answer;
  while (!(answer = stream_.receive())) {
    if (!stream_.is_open() || Clock::now() >= deadline_) {
      throw std::runtime_error(
          fmt::format("rank 0 says nothing: {}",
                      stream_.is_open() ? std::string("no answer in time") : stream_.why_closed()));
    }
    stream_.flush();
    stream_.wait(deadline_);
    stream_.read_available();
  }
  const bool is_whole = answer->body.size() >= sizeof(Place);
  const std::string_view rest = is_whole ? rest_of(*answer) : std::string_view();
  if (answer->kind != gathered || rest.size() != own_.ranks * nccl::kHandleBytes) {
    throw std::runtime_error(rest.empty() ? "what rank 0 says is no answer" : std::string(rest));
  }
  std::vector<Handle> all(own_.ranks);
  std::memcpy(all.data(), rest.data(), rest.size());
  return all;
}

void Meeting::decline(std::string_view why) {
  stream_.send(declines, body_of(own_, why));
  while (stream_.is_open() && stream_.has_backlog() && Clock::now() < deadline_) {
    stream_.flush();
    stream_.wait(deadline_);
  }
  while (stream_.is_open() && !stream_.receive() && Clock::now() < deadline_) {
    stream_.wait(deadline_); // the answer: who goes before it is read may take it away
    stream_.read_available();
  }
}

} // namespace weir::nccl_check
