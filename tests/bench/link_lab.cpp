// SPDX-License-Identifier: BSD-3-Clause
#include "link_lab.hpp"

#include "host/base/stream.hpp"
#include "host/transport/ethdev_io.hpp"
#include "host/transport/packet_socket.hpp"
#include "measurement.hpp"

#include <fmt/format.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <net/if.h>
#include <stdexcept>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>

namespace weir::bench {
namespace {

constexpr std::size_t kPoolFrames = 32768; // AF_XDP keeps 2048 and more for each port
constexpr std::size_t kBatch = 64;         // frames of all hosts, whole messages of a ring
constexpr std::size_t kWindow = 4 * kBatch;
constexpr std::size_t kPass = 16 * kBatch;
constexpr std::chrono::milliseconds kLinkTimeout{5000};
constexpr std::chrono::milliseconds kSilence{10'000}; // after which a frame is taken for lost
constexpr std::chrono::milliseconds kQuiet{50};       // when nothing more is expected

/// `text` with the port's number and the folder in their places.
std::string filled_in(std::string_view text, std::uint16_t port,
                      const std::filesystem::path& folder) {
  return fmt::format(fmt::runtime(text), port, folder.string());
}

/// Runs ip(8); throws when it fails.
void run_ip(const std::string& arguments) {
  const std::string command = "ip " + arguments;
  const int status = std::system((command + " 2>/dev/null").c_str());
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw std::runtime_error(fmt::format("`{}` fails", command));
  }
}

bool is_running(const std::string& interface) {
  const host::Socket socket([] { return ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0); });
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  return ioctl(socket.get(), SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & IFF_RUNNING) != 0;
}

/// Both ends of a cable. Frames are lost until the kernel has seen that both are up, which it does
/// later, under the lock that the second command of an interface waits for.
void bring_up(const std::array<std::string, 2>& ends) {
  for (const std::string& end : ends) {
    run_ip(fmt::format("link set {} up", end));
  }
  const auto deadline = std::chrono::steady_clock::now() + kLinkTimeout;
  while (!std::all_of(ends.begin(), ends.end(), is_running)) {
    if (std::chrono::steady_clock::now() > deadline) {
      throw std::runtime_error(fmt::format("{} does not come up", ends.front()));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  run_ip(fmt::format("link set {} up", ends.front()));
}

std::uint64_t bytes_of(const FrameStock& stock, std::size_t first, std::size_t last) {
  std::uint64_t bytes = 0;
  for (std::size_t i = first; i < last; ++i) {
    bytes += stock.frame(i)->data_len;
  }
  return bytes;
}

/// Sends frames `first` .. `last`, at most kWindow at a time, and calls `between` while frames are
/// under way. Throws LostFrames when another number of frames comes than was sent.
template <typename Between>
void exchange(FarEnds& hosts, const FrameStock& stock, std::size_t first, std::size_t last,
              Between&& between) {
  std::size_t sent = first;
  std::size_t received = first;
  auto last_news = std::chrono::steady_clock::now();
  while (received < last) {
    if (const std::size_t batch = std::min(kBatch, last - sent);
        batch != 0 && sent + batch - received <= kWindow) {
      hosts.send(stock, sent, batch);
      sent += batch;
    }
    between();
    const std::size_t news = hosts.receive();
    received += news;
    const auto now = std::chrono::steady_clock::now();
    last_news = news != 0 ? now : last_news;
    if (now - last_news > kSilence) {
      throw LostFrames(fmt::format("{} of {} frames came", received, sent));
    }
  }
  if (received != sent) {
    throw LostFrames(fmt::format("{} frames came of {}", received, sent));
  }
}

/// Sends the whole stock in passes. The fastest is the one that nothing disturbed.
template <typename Between>
double seconds_of_a_frame(FarEnds& hosts, const FrameStock& stock, Between&& between) {
  double fastest = std::numeric_limits<double>::infinity();
  for (std::size_t first = 0; first < stock.size(); first += kPass) {
    const std::size_t last = std::min(first + kPass, stock.size());
    const std::uint64_t before = hosts.bytes_received();
    const double seconds = bench::seconds_of([&] { exchange(hosts, stock, first, last, between); });
    if (hosts.bytes_received() - before != bytes_of(stock, first, last)) {
      throw LostFrames("frames came with another length than was sent");
    }
    fastest = std::min(fastest, seconds / static_cast<double>(last - first));
  }
  return fastest;
}

std::unique_ptr<host::FrameIo> make_far_end(const LinkKind& kind, std::uint16_t port,
                                            const std::filesystem::path& folder) {
  const std::string end = filled_in(kind.host, port, folder);
  if (kind.far_end == FarEnd::device) {
    return std::make_unique<host::EthdevIo>(end, kLinkTimeout);
  }
  return std::make_unique<host::PacketSocket>(end);
}

} // namespace

Cables::Cables(const LinkKind& kind, std::uint16_t ports, const std::filesystem::path& folder)
    : Cables() {
  for (std::uint16_t port = 0; port < ports && !kind.cable.empty(); ++port) {
    run_ip(filled_in(kind.cable, port, folder));
    interfaces_.push_back(fmt::format("port{}", port));
    bring_up({interfaces_.back(), filled_in(kind.host, port, folder)});
  }
}

Cables::~Cables() {
  for (const std::string& interface : interfaces_) {
    try {
      run_ip("link delete " + interface);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "links_bench: %s\n", error.what());
    }
  }
}

void FarEnds::send(const FrameStock& stock, std::size_t first, std::size_t count) {
  for (std::size_t i = first; i < first + count; ++i) {
    const rte_mbuf* frame = stock.frame(i);
    host::FrameIo& end = *ends_[stock.port_of(i)];
    const std::span<std::uint8_t> room = end.reserve(frame->data_len);
    if (!room.empty()) { // otherwise it is lost, as on a full NIC
      std::memcpy(room.data(), rte_pktmbuf_mtod(frame, const std::uint8_t*), frame->data_len);
      end.commit(frame->data_len);
    }
  }
  for (const auto& end : ends_) {
    end->flush();
  }
}

std::size_t FarEnds::receive() {
  std::size_t frames = 0;
  for (const auto& end : ends_) {
    frames += end->receive(counter_);
  }
  return frames;
}

void DetachPort::operator()(control::Port* port) const {
  const std::unique_ptr<control::Port> owned(port);
  try {
    owned->detach();
  } catch (const control::PortError& error) {
    std::fprintf(stderr, "links_bench: %s\n", error.what());
  }
}

LinkLab::LinkLab(const LinkKind& kind, const Workload& workload,
                 const std::filesystem::path& folder)
    : folder_(folder), pool_(make_pool("bench_links", kPoolFrames, RTE_MBUF_DEFAULT_DATAROOM)),
      cables_(kind, workload.ports(), folder), tables_(workload) {
  make_ports(kind, workload.ports());
  make_lcore(workload);
  for (std::uint16_t port = 0; port < workload.ports(); ++port) {
    hosts_.add(make_far_end(kind, port, folder_));
  }
  open_connections(workload);
}

void LinkLab::make_ports(const LinkKind& kind, std::uint16_t count) {
  for (std::uint16_t port = 0; port < count; ++port) {
    config::PortConfig config;
    config.name = fmt::format("p{}", port);
    config.device = filled_in(kind.device, port, folder_);
    ports_.emplace_back(new control::Port(config));
    ports_.back()->start(pool_.get());
  }
}

void LinkLab::make_lcore(const Workload& workload) {
  lcore_ = std::make_unique<lcore::Lcore>(0, lcore::Idle::spin, tables_.shared);
  for (std::uint16_t port = 0; port < ports_.size(); ++port) {
    lcore_->add_rx_queue({port, ports_[port]->device(), 0});
    lcore_->add_tx_port(port, ports_[port]->tx_queues());
  }
  lcore_->make_worker(all_rings(workload), tables_.worker_settings());
}

void LinkLab::open_connections(const Workload& workload) {
  const auto& hellos = workload.hellos();
  const Pool pool = make_pool("bench_hellos", hellos.size(), longest_of(hellos));
  seconds_on_one_core(FrameStock(hellos, pool.get()));
}

LinkLab::~LinkLab() = default;

double LinkLab::seconds_on_one_core(const FrameStock& stock) {
  return seconds_of_a_frame(hosts_, stock, [this] { run_round(); });
}

double LinkLab::seconds_on_two_cores(const FrameStock& stock) {
  const auto run = [](void* lcore) {
    static_cast<lcore::Lcore*>(lcore)->run();
    return 0;
  };
  const unsigned id = rte_get_next_lcore(rte_lcore_id(), 1, 0);
  rte_eal_remote_launch(run, lcore_.get(), id);
  lcore_->wait_until_running();
  const auto stop = [&](int*) {
    lcore_->stop();
    rte_eal_wait_lcore(id);
  };
  int runs = 0;
  const std::unique_ptr<int, decltype(stop)> stopped_at_the_end(&runs, stop);
  return seconds_of_a_frame(hosts_, stock, [] {});
}

std::size_t LinkLab::frames_kept(const FrameStock& stock) {
  hosts_.send(stock, 0, stock.size());
  std::size_t kept = 0;
  auto last_news = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - last_news < kQuiet) {
    run_round();
    const std::size_t news = hosts_.receive();
    kept += news;
    last_news = news != 0 ? std::chrono::steady_clock::now() : last_news;
  }
  return kept;
}

double seconds_without_switch(const FrameStock& stock, const std::filesystem::path& folder) {
  const Cables cable(kLinkKinds.front(), 1, folder);
  FarEnds ends;
  ends.add(std::make_unique<host::PacketSocket>("host0"));
  ends.add(std::make_unique<host::PacketSocket>("port0"));
  return seconds_of_a_frame(ends, stock, [] {});
}

} // namespace weir::bench
