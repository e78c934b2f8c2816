// SPDX-License-Identifier: BSD-3-Clause
#include "link_lab.hpp"
#include "measurement.hpp"
#include "support/temporary_folder.hpp"

#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sched.h>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace weir::bench {
namespace {

constexpr std::string_view kPart = "links";
constexpr std::uint16_t kHosts = 2;
constexpr std::uint32_t kBurstFrames = 4 * 8192; // of all hosts; more than any link keeps

enum class Work : std::uint8_t { forward, sum };

/// What hosts send, and on how many cores they and the switch work.
struct Traffic {
  Work work = Work::forward;
  std::uint16_t payload = 1024;
  unsigned cores = 1;
};

std::vector<Traffic> traffics(Effort effort) {
  std::vector<Traffic> all{{.work = Work::forward}, {.work = Work::sum}};
  if (effort == Effort::full) {
    all.push_back({.work = Work::forward, .payload = 64});
  }
  if (rte_lcore_count() > 1) {
    all.push_back({.work = Work::forward, .cores = 2});
    all.push_back({.work = Work::sum, .cores = 2});
  } else {
    std::fprintf(stderr, "links_bench: one core, so nothing is measured on two\n");
  }
  return all;
}

Case case_of(const LinkKind& kind, const Traffic& traffic) {
  return Case()
      .with("link", kind.name)
      .with("work", traffic.work == Work::sum ? "sum" : "forward")
      .with("payload", traffic.payload)
      .with("cores", traffic.cores);
}

/// The frames of one measurement, and the job whose ring they may belong to.
struct Load {
  Load(const Traffic& traffic, Effort effort)
      : workload({.world = kHosts,
                  .payload = std::max<std::uint16_t>(traffic.payload, 256),
                  .bytes = effort == Effort::full ? 16u << 20 : 2u << 20}),
        frames(traffic.work == Work::sum
                   ? workload.data()
                   : frames_of({.ports = kHosts,
                                .payload = traffic.payload,
                                .frames = static_cast<std::uint32_t>(workload.data().size())})),
        pool(make_pool("bench_data", frames.size(), longest_of(frames))),
        stock(frames, pool.get()) {}

  const Workload workload;
  const std::vector<Arrival> frames;
  const Pool pool;
  FrameStock stock;
};

/// Measures every kind of link that this machine can make, and tells once of each that it cannot.
class LinksPart {
 public:
  LinksPart(const Options& options, std::filesystem::path folder, std::string no_network)
      : options_(options), folder_(std::move(folder)), no_network_(std::move(no_network)) {}

  void measure() {
    for (unsigned round = 0; round < options_.rounds; ++round) {
      tell_progress(kPart, round, options_);
      for (const Traffic& traffic : traffics(options_.effort)) {
        measure(traffic, round);
      }
    }
  }

 private:
  void measure(const Traffic& traffic, unsigned round) {
    Load load(traffic, options_.effort);
    const std::optional<double> baseline = rate_of(kLinkKinds.front(), traffic, load);
    const std::optional<double> bound = rate_without_switch(load);
    for (const LinkKind& kind : kLinkKinds) {
      const Case parameters = case_of(kind, traffic);
      if (!parameters.is_wanted(options_)) {
        continue;
      }
      const bool is_baseline = &kind == kLinkKinds.data();
      if (const auto rate = is_baseline ? baseline : rate_of(kind, traffic, load); rate) {
        report(kPart, parameters, round,
               figures_of(*rate, baseline, bound, kept_by(kind, traffic)));
      }
    }
  }

  using MaybeRate = std::optional<double>;

  static std::vector<Figure> figures_of(double rate, MaybeRate baseline, MaybeRate bound,
                                        MaybeRate kept) {
    std::vector<Figure> figures{{"rate", rate, "Mpps", baseline ? "af_packet" : ""}};
    if (baseline) {
      figures.push_back({"af_packet", *baseline, "Mpps"});
    }
    if (bound) {
      figures.push_back({"no_switch", *bound, "Mpps"});
    }
    if (kept) {
      figures.push_back({"kept", *kept, "frames"});
    }
    return figures;
  }

  /// Millions of frames a second, or nothing where this machine cannot make the link.
  std::optional<double> rate_of(const LinkKind& kind, const Traffic& traffic, Load& load) {
    return if_it_can_be_made(kind, [&] {
      LinkLab lab(kind, load.workload, folder_);
      load.stock.refill();
      if (traffic.work == Work::sum) {
        load.stock.enter_sessions([&](std::uint16_t) { return lab.session(); });
      }
      const double seconds = traffic.cores == 1 ? lab.seconds_on_one_core(load.stock)
                                                : lab.seconds_on_two_cores(load.stock);
      return 1e-6 / seconds;
    });
  }

  /// For one of a kind's cases.
  std::optional<double> kept_by(const LinkKind& kind, const Traffic& traffic) {
    if (traffic.work != Work::forward || traffic.cores != 1 || traffic.payload != 1024) {
      return std::nullopt;
    }
    return if_it_can_be_made(kind, [&] {
      const auto frames =
          frames_of({.ports = kHosts, .payload = traffic.payload, .frames = kBurstFrames});
      const Pool pool = make_pool("bench_burst", frames.size(), longest_of(frames));
      LinkLab lab(kind, Workload({.world = kHosts}), folder_);
      return static_cast<double>(lab.frames_kept(FrameStock(frames, pool.get()))) / kHosts;
    });
  }

  std::optional<double> rate_without_switch(const Load& load) {
    return if_it_can_be_made({.name = "no switch"},
                             [&] { return 1e-6 / seconds_without_switch(load.stock, folder_); });
  }

  template <typename Measure>
  std::optional<double> if_it_can_be_made(const LinkKind& kind, Measure&& measure) {
    if (left_out_.contains(kind.name)) {
      return std::nullopt;
    }
    try {
      if (kind.far_end == FarEnd::interface && !no_network_.empty()) {
        throw std::runtime_error(no_network_);
      }
      return measure();
    } catch (const LostFrames& error) {
      const std::string what = fmt::format("{}: {}", kind.name, error.what());
      if (kind.delivery == Delivery::every_frame) {
        throw std::runtime_error(what);
      }
      std::fprintf(stderr, "links_bench: a round of %s is left out: %s\n",
                   std::string(kind.name).c_str(), what.c_str());
      return std::nullopt;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "links_bench: %s is left out: %s\n", std::string(kind.name).c_str(),
                   error.what());
      left_out_.insert(kind.name);
      return std::nullopt;
    }
  }

  const Options& options_;
  const std::filesystem::path folder_;
  const std::string no_network_; // why there is no network namespace; empty: there is one
  std::set<std::string_view> left_out_;
};

/// Every interface of this program is in a network namespace of its own, which ends with it. There
/// the kernel sends nothing of itself. Returns why there is none, or an empty text.
std::string leave_the_machines_network() {
  if (unshare(CLONE_NEWNET) != 0) {
    return fmt::format("no network namespace: {}; run it as root", std::strerror(errno));
  }
  std::ofstream("/proc/sys/net/ipv6/conf/default/disable_ipv6") << 1;
  return {};
}

/// Keeps a library that EAL may have loaded from telling each step on stderr.
void silence(const char* library, const char* set_print) {
  if (void* loaded = dlopen(library, RTLD_NOW | RTLD_NOLOAD); loaded != nullptr) {
    using SetPrint = void* (*)(void*);
    if (const auto set = reinterpret_cast<SetPrint>(dlsym(loaded, set_print)); set != nullptr) {
      set(nullptr);
    }
  }
}

void start_eal() {
  std::array<std::string, 8> arguments{"links_bench", "--no-pci",       "--no-telemetry",
                                       "--no-huge",   "--no-shconf",    "-m",
                                       "1200",        "--log-level=*:3"};
  std::array<char*, arguments.size()> argv{};
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    argv[i] = arguments[i].data();
  }
  if (rte_eal_init(static_cast<int>(argv.size()), argv.data()) < 0) {
    throw std::runtime_error(std::string("EAL does not start: ") + rte_strerror(rte_errno));
  }
  silence("libbpf.so.1", "libbpf_set_print");
  silence("libxdp.so.1", "libxdp_set_print");
}

} // namespace
} // namespace weir::bench

int main(int argc, char** argv) {
  using namespace weir::bench;
  const Options options = read_options(argc, argv, {kPart}, {.full = 9, .quick = 1});
  try {
    const std::string no_network = leave_the_machines_network();
    start_eal();
    const weir::test::TemporaryFolder sockets("weir-links");
    LinksPart(options, sockets.path(), no_network).measure();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "links_bench: %s\n", error.what());
    return 1;
  }
}
