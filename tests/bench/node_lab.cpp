// SPDX-License-Identifier: BSD-3-Clause
#include "node_lab.hpp"

#include "host/transport/frame_io.hpp"
#include "measurement.hpp"
#include "support/free_address.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace weir::bench {
namespace {

/// Nothing leaves the host, so nothing is sent.
class NoFrames : public host::FrameIo {
 public:
  wire::MacAddress mac() const override { return {}; }

  std::size_t receive(host::FrameReader& /*reader*/) override { return 0; }

  std::span<std::uint8_t> reserve(std::size_t /*bytes*/) override { return {}; }

  void commit(std::size_t /*frame_bytes*/) override {}

  void flush() override {}

  int descriptor() const override { return host::kNoDescriptor; }
};

/// Runs body(rank) for each rank in a thread of its own.
void run_all(std::uint16_t ranks, const std::function<void(std::uint16_t)>& body) {
  std::vector<std::jthread> threads;
  for (std::uint16_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] { body(rank); });
  }
}

} // namespace

NodeLab::NodeLab(std::uint16_t ranks, std::size_t most_elements) : places_(ranks) {
  const std::string address = test::free_address();
  run_all(ranks, [&](std::uint16_t rank) {
    host::GroupOptions options;
    options.rank = rank;
    options.world = ranks;
    options.rendezvous = address;
    options.ip = "10.7.0.1";
    options.nic = "bench";
    Place& place = places_[rank];
    place.in.assign(most_elements, static_cast<float>(rank));
    place.out.assign(most_elements, 0);
    place.group = std::make_unique<host::Group>(options, std::make_unique<NoFrames>());
  });
}

NodeLab::Times NodeLab::measure(std::size_t calls, const std::function<void(Place&)>& call) {
  std::vector<double> means(ranks());
  double cpu_begin = 0;
  std::barrier start(ranks(), [&]() noexcept { cpu_begin = process_cpu_seconds(); });
  run_all(ranks(), [&](std::uint16_t rank) {
    call(places_[rank]); // not timed
    start.arrive_and_wait();
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < calls; ++i) {
      call(places_[rank]);
    }
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
    means[rank] = time.count() / static_cast<double>(calls);
  });
  const double cpu = process_cpu_seconds() - cpu_begin;
  return {*std::ranges::max_element(means), cpu * 1e9 / static_cast<double>(calls * ranks())};
}

NodeLab::Times NodeLab::all_reduce(std::size_t elements, std::size_t calls) {
  return measure(calls, [elements](Place& place) {
    place.group->all_reduce(place.in.data(), place.out.data(), elements, DataType::f32,
                            Operation::sum);
  });
}

NodeLab::Times NodeLab::copy(std::size_t elements, std::size_t calls) {
  return measure(calls, [elements](Place& place) {
    std::memcpy(place.out.data(), place.in.data(), elements * sizeof(float));
  });
}

} // namespace weir::bench
