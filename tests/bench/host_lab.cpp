// SPDX-License-Identifier: BSD-3-Clause
#include "host_lab.hpp"

#include "host/api/transport_options.hpp"
#include "measurement.hpp"
#include "support/free_address.hpp"

#include <numeric>
#include <thread>
#include <utility>

namespace weir::bench {
namespace {

constexpr std::uint32_t kWindow = 32;
constexpr std::uint32_t kMessageBytes = 8192;
constexpr std::uint32_t kMtu = 1024;
constexpr std::uint32_t kSession = 7;

// Of a measured thread; others have none.
thread_local Stages* stages = nullptr;

class Within {
 public:
  explicit Within(Stage stage) : before_(stages == nullptr ? stage : stages->enter(stage)) {}

  ~Within() {
    if (stages != nullptr) {
      stages->enter(before_);
    }
  }

  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;

 private:
  const Stage before_;
};

/// Frames whose time is the device's.
class TimedFrames : public host::FrameIo {
 public:
  explicit TimedFrames(std::unique_ptr<host::FrameIo> frames) : frames_(std::move(frames)) {}

  wire::MacAddress mac() const override { return frames_->mac(); }

  std::size_t receive(host::FrameReader& reader) override {
    TimedReader timed(reader);
    const Within network(Stage::network);
    return frames_->receive(timed);
  }

  std::span<std::uint8_t> reserve(std::size_t bytes) override { return frames_->reserve(bytes); }

  void commit(std::size_t frame_bytes) override {
    const Within network(Stage::network);
    frames_->commit(frame_bytes);
  }

  void flush() override { frames_->flush(); }

  int descriptor() const override { return frames_->descriptor(); }

 private:
  class TimedReader : public host::FrameReader {
   public:
    explicit TimedReader(host::FrameReader& reader) : reader_(reader) {}

    void accept(std::span<std::uint8_t> frame) override {
      const Within transport(Stage::poll);
      reader_.accept(frame);
    }

   private:
    host::FrameReader& reader_;
  };

  std::unique_ptr<host::FrameIo> frames_;
};

/// What the transport reports is the library's time.
class TimedListener : public host::TransportListener {
 public:
  explicit TimedListener(host::TransportListener& listener) : listener_(listener) {}

  host::Arrival arrived(std::size_t channel, const host::IncomingMessage& message) override {
    const Within library(Stage::results);
    return listener_.arrived(channel, message);
  }

  void completed(std::size_t channel) override {
    const Within library(Stage::results);
    listener_.completed(channel);
  }

  void failed(std::size_t channel, const host::Error& error) override {
    listener_.failed(channel, error);
  }

 private:
  host::TransportListener& listener_;
};

class TimedTransport : public host::Transport {
 public:
  explicit TimedTransport(std::unique_ptr<host::Transport> transport)
      : transport_(std::move(transport)) {}

  std::vector<std::uint8_t> address() const override { return transport_->address(); }

  std::uint32_t queue_pair(std::size_t channel) const override {
    return transport_->queue_pair(channel);
  }

  void connect(const host::Neighbour& predecessor, const host::Neighbour& successor) override {
    transport_->connect(predecessor, successor);
  }

  void renew(host::Delivery delivery) override { transport_->renew(delivery); }

  void close(std::size_t channel) override { transport_->close(channel); }

  void quiesce() override { transport_->quiesce(); }

  bool post(std::size_t channel, const host::OutgoingMessage& message) override {
    const Within transport(Stage::post);
    return transport_->post(channel, message);
  }

  bool poll(host::TransportListener& listener) override {
    TimedListener timed(listener);
    end_sleep();
    const Within transport(Stage::poll);
    return transport_->poll(timed);
  }

  int descriptor() const override { return transport_->descriptor(); }

  /// Its caller sleeps after this, until the next poll.
  bool arm() override {
    const bool may_sleep = transport_->arm();
    if (may_sleep && stages != nullptr) {
      stages->enter(Stage::sleep);
    }
    return may_sleep;
  }

  host::Deadline due() const override { return transport_->due(); }

  host::TransportStatistics statistics() const override { return transport_->statistics(); }

  std::string describe(std::size_t channel) const override { return transport_->describe(channel); }

 private:
  /// A thread that has slept in a poll's absence was waiting.
  static void end_sleep() {
    if (stages != nullptr && stages->stage() == Stage::sleep) {
      stages->enter(Stage::wait);
    }
  }

  std::unique_ptr<host::Transport> transport_;
};

std::string ip_of(std::uint16_t rank) {
  return "10.7.0." + std::to_string(rank + 1);
}

/// That no other lab of this process has: a ring belongs to one group of a process.
std::vector<std::uint32_t> fresh_ids(std::uint32_t rings) {
  static std::uint32_t next = 1;
  std::vector<std::uint32_t> ids(rings);
  std::iota(ids.begin(), ids.end(), next);
  next += rings;
  return ids;
}

std::vector<ring::RingSpec> rings_of_all(const std::vector<std::uint32_t>& ids) {
  std::vector<ring::RingSpec> rings;
  for (const std::uint32_t id : ids) {
    ring::RingSpec& ring = rings.emplace_back();
    ring.id = id;
    ring.window = kWindow;
    ring.max_message_bytes = kMessageBytes;
    ring.mtu = kMtu;
    for (std::uint16_t rank = 0; rank < HostLab::kRanks; ++rank) {
      ring.members.push_back({*wire::parse_ip(ip_of(rank)), std::nullopt});
    }
  }
  return rings;
}

/// Returns when all have ended.
template <typename Body>
void in_each_rank(const Body& body) {
  std::vector<std::jthread> threads;
  for (std::uint16_t rank = 0; rank < HostLab::kRanks; ++rank) {
    threads.emplace_back([&body, rank] { body(rank); });
  }
}

} // namespace

HostLab::HostLab(std::uint32_t rings, std::size_t most_bytes)
    : rings_(fresh_ids(rings)),
      fabric_(rings_of_all(rings_), kRanks, kSession, test::Timekeeper::ports) {
  data_.fill(std::vector<float>(most_bytes / sizeof(float)));
  in_each_rank([this, address = test::free_address()](std::uint16_t rank) {
    groups_[rank] = form_group(rank, address);
  });
}

/// A farewell needs all ranks.
HostLab::~HostLab() {
  in_each_rank([this](std::uint16_t rank) { groups_[rank].reset(); });
}

std::unique_ptr<host::Group> HostLab::form_group(std::uint16_t rank, const std::string& address) {
  host::GroupOptions options;
  options.rank = rank;
  options.world = kRanks;
  options.rendezvous = address;
  options.rings = rings_;
  options.window = kWindow;
  options.message_bytes = kMessageBytes;
  options.path_mtu = kMtu;
  options.ip = ip_of(rank);
  options.epoch = 1;
  auto frames = std::make_unique<TimedFrames>(fabric_.open(rank));
  return std::make_unique<host::Group>(
      options,
      std::make_unique<TimedTransport>(host::open_software_transport(options, std::move(frames))));
}

HostLab::Spent HostLab::measure(const Calls& calls) {
  std::array<Stages, kRanks> clocks;
  std::array<double, kRanks> seconds{};
  std::array<double, kRanks> whole_seconds{};
  const Calls warm_up{calls.bytes, calls.queued, calls.batches / 8 + 1};
  const double before = process_cpu_seconds();
  in_each_rank([&](std::uint16_t rank) {
    make(rank, warm_up);
    clocks[rank].reset();
    stages = &clocks[rank];
    seconds[rank] = cpu_seconds_of([&] { make(rank, calls); });
    clocks[rank].enter(Stage::outside);
    whole_seconds[rank] = cpu_seconds();
  });
  const double others = process_cpu_seconds() - before - whole_seconds[0] - whole_seconds[1];
  const auto share = 1.0 / static_cast<double>(calls.batches * calls.queued * kRanks);
  Spent spent;
  spent.own_threads_ns = others * 1e9 * share * static_cast<double>(calls.batches) /
                         static_cast<double>(calls.batches + warm_up.batches);
  for (std::uint16_t rank = 0; rank < kRanks; ++rank) {
    for (std::size_t stage = 0; stage < kStages; ++stage) {
      spent.ns[stage] += clocks[rank].ns(static_cast<Stage>(stage)) * share;
    }
    spent.cpu_ns += seconds[rank] * 1e9 * share;
  }
  return spent;
}

void HostLab::make(std::uint16_t rank, const Calls& calls) {
  for (std::size_t batch = 0; batch < calls.batches; ++batch) {
    std::vector<host::Pending> pending;
    for (std::size_t call = 0; call < calls.queued; ++call) {
      const Within library(Stage::start);
      pending.push_back(groups_[rank]->start_all_reduce(data_[rank].data(), data_[rank].data(),
                                                        calls.bytes / sizeof(float), DataType::f32,
                                                        Operation::max));
    }
    for (host::Pending& call : pending) {
      const Within library(Stage::wait);
      call.wait();
    }
  }
}

} // namespace weir::bench
