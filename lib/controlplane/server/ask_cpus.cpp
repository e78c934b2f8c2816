// SPDX-License-Identifier: BSD-3-Clause
#include "server/asks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

namespace weir::server {
namespace {

using config::Idle;
using config::LcoreConfig;

constexpr std::string_view kBestGovernor = "performance";
constexpr unsigned kLongestExitUs = 10; // an idle lcore sleeps for longer by itself

/// CPUs that there are, of lcores that move packets and that sleep between them, or do not.
enum class Sleeping : std::uint8_t { no, yes };

std::vector<const CpuFacts*> packet_cpus(const Case& given, Sleeping sleeping) {
  std::vector<const CpuFacts*> cpus;
  for (const LcoreConfig& lcore : given.config.lcores) {
    const CpuFacts* const cpu = given.facts.find_cpu(lcore.id);
    const bool is_meant = (lcore.idle == Idle::sleep) == (sleeping == Sleeping::yes);
    if (cpu != nullptr && lcore.moves_packets() && is_meant) {
      cpus.push_back(cpu);
    }
  }
  return cpus;
}

/// "2,3", as commands take them.
std::string listed(const std::vector<unsigned>& cpus) {
  return fmt::format("{}", fmt::join(cpus, ","));
}

template <typename Predicate>
std::vector<unsigned> ids_of(const std::vector<const CpuFacts*>& cpus, Predicate&& holds) {
  std::vector<unsigned> ids;
  for (const CpuFacts* cpu : cpus) {
    if (holds(*cpu)) {
      ids.push_back(cpu->cpu.id);
    }
  }
  return ids;
}

std::vector<unsigned> isolated_ids(const Case& given) {
  std::vector<unsigned> ids;
  for (const CpuFacts& cpu : given.facts.cpus) {
    if (cpu.is_isolated) {
      ids.push_back(cpu.cpu.id);
    }
  }
  return ids;
}

/// For the kernel's command line (Documentation/admin-guide/kernel-parameters.txt).
std::string isolation_of(const std::string& cpus) {
  return fmt::format("isolcpus={0} nohz_full={0} rcu_nocbs={0}", cpus);
}

/// The kernel starts all processes on CPUs that are not isolated, so `auto` does not see the
/// others.
Finding auto_shares(const Case& given, const std::string& shared) {
  if (const auto isolated = isolated_ids(given); !isolated.empty()) {
    return {Rank::warning,
            fmt::format("lcores: auto takes CPU {}, since it does not see the isolated {}", shared,
                        listed(isolated)),
            "# name isolated CPUs under lcores:"};
  }
  return {
      Rank::warning, fmt::format("other programs run on CPU {} too", shared),
      fmt::format("# name {0} under lcores:, since auto does not see isolated CPUs; then {1} on "
                  "the kernel's command line",
                  shared, isolation_of(shared))};
}

bool is_lcore(const Case& given, unsigned id) {
  return std::ranges::find(given.config.lcores, id, &LcoreConfig::id) != given.config.lcores.end();
}

/// Of one lcore that does not sleep: who else runs on its core.
void ask_sibling(const Case& given, const CpuFacts& mine, const CpuFacts& other,
                 std::vector<Finding>& findings) {
  const bool shares = other.cpu.core == mine.cpu.core && other.cpu.id != mine.cpu.id;
  if (!shares || !other.is_online) {
    return;
  }
  if (is_lcore(given, other.cpu.id)) {
    findings.push_back(
        {Rank::warning, fmt::format("lcore {}'s core runs lcore {} too", mine.cpu.id, other.cpu.id),
         fmt::format("# under lcores: name one CPU of each core; {} and {} are one's",
                     mine.cpu.core, std::max(mine.cpu.id, other.cpu.id))});
  } else if (!other.is_isolated) {
    findings.push_back(
        {Rank::warning,
         fmt::format("lcore {}'s core runs other programs too, on CPU {}", mine.cpu.id,
                     other.cpu.id),
         fmt::format("echo 0 > /sys/devices/system/cpu/cpu{}/online", other.cpu.id)});
  }
}

/// How long the CPU may take to wake up.
const IdleState* deepest(const CpuFacts& cpu) {
  const IdleState* deepest = nullptr;
  for (const IdleState& state : cpu.idle_states) {
    if (state.is_allowed && (deepest == nullptr || state.exit_us > deepest->exit_us)) {
      deepest = &state;
    }
  }
  return deepest;
}

} // namespace

std::vector<Finding> ask_cpus(const Case& given) {
  std::vector<Finding> findings;
  std::vector<unsigned> there;
  for (const LcoreConfig& lcore : given.config.lcores) {
    const CpuFacts* const cpu = given.facts.find_cpu(lcore.id);
    if (cpu == nullptr) {
      findings.push_back({Rank::wrong,
                          fmt::format("lcore {}: this machine has no such CPU", lcore.id),
                          "lscpu -e # the CPUs that there are, for lcores[].id"});
    } else if (!cpu->is_online) {
      findings.push_back({Rank::wrong, fmt::format("lcore {}: the CPU is offline", lcore.id),
                          fmt::format("echo 1 > /sys/devices/system/cpu/cpu{}/online", lcore.id)});
    } else {
      there.push_back(lcore.id);
    }
  }
  if (findings.empty()) {
    findings.push_back({Rank::fine, fmt::format("{} are there", listed(there))});
  }
  return findings;
}

/// An lcore that does not sleep takes a whole CPU's time, and stands still when the quota is used
/// up.
std::vector<Finding> ask_cpu_time(const Case& given) {
  const auto busy = std::ranges::count_if(
      given.config.lcores, [](const LcoreConfig& lcore) { return lcore.idle != Idle::sleep; });
  const std::optional<double> quota = given.facts.cpu_quota;
  if (!quota) {
    return {{Rank::fine, "no control group limits it"}};
  }
  if (static_cast<double>(busy) <= *quota) {
    return {{Rank::fine, fmt::format("control groups grant {:.3g} CPUs, and {} of the lcores do "
                                     "not sleep",
                                     *quota, busy)}};
  }
  return {{Rank::warning,
           fmt::format("{} lcores do not sleep, and control groups grant {:.3g} CPUs: frames wait "
                       "until the next period",
                       busy, *quota),
           fmt::format("# grant the container {} CPUs (cpu.max), or list fewer lcores, or have "
                       "them sleep (idle: sleep)",
                       busy)}};
}

std::vector<Finding> ask_isolation(const Case& given) {
  const auto cpus = packet_cpus(given, Sleeping::no);
  const auto shared = ids_of(cpus, [](const CpuFacts& cpu) { return !cpu.is_isolated; });
  if (cpus.empty()) {
    return {};
  }
  if (shared.empty()) {
    return {{Rank::fine, fmt::format("no other program runs on CPU {}",
                                     listed(ids_of(cpus, [](const CpuFacts&) { return true; })))}};
  }
  if (given.config.lcores_by == config::LcoresBy::the_switch) {
    return {auto_shares(given, listed(shared))};
  }
  return {
      {Rank::warning, fmt::format("other programs run on CPU {} too", listed(shared)),
       fmt::format("sed -i 's/^GRUB_CMDLINE_LINUX=\"/&{} /' /etc/default/grub && update-grub && "
                   "reboot",
                   isolation_of(listed(shared)))}};
}

std::vector<Finding> ask_siblings(const Case& given) {
  const auto cpus = packet_cpus(given, Sleeping::no);
  std::vector<Finding> findings;
  for (const CpuFacts* mine : cpus) {
    for (const CpuFacts& other : given.facts.cpus) {
      ask_sibling(given, *mine, other, findings);
    }
  }
  if (findings.empty() && !cpus.empty()) {
    findings.push_back({Rank::fine, "each lcore that moves packets has a core for itself"});
  }
  return findings;
}

std::vector<Finding> ask_governors(const Case& given) {
  const auto cpus = packet_cpus(given, Sleeping::no);
  if (cpus.empty()) {
    return {};
  }
  if (std::ranges::any_of(cpus, [](const CpuFacts* cpu) { return cpu->governor.empty(); })) {
    return {{Rank::unknown, "the kernel does not set it here: firmware or a hypervisor does"}};
  }
  const auto slow = ids_of(cpus, [](const CpuFacts& cpu) { return cpu.governor != kBestGovernor; });
  if (slow.empty()) {
    return {{Rank::fine, "governor performance"}};
  }
  return {
      {Rank::warning,
       fmt::format("governor {} on CPU {}", given.facts.find_cpu(slow.front())->governor,
                   listed(slow)),
       fmt::format("cpupower --cpu {} frequency-set --governor {}", listed(slow), kBestGovernor)}};
}

std::vector<Finding> ask_idle_states(const Case& given) {
  std::vector<Finding> findings;
  for (const CpuFacts* cpu : packet_cpus(given, Sleeping::yes)) {
    const IdleState* const state = deepest(*cpu);
    if (state != nullptr && state->exit_us > kLongestExitUs) {
      findings.push_back({Rank::warning,
                          fmt::format("CPU {} may take {} us to wake up, from {}", cpu->cpu.id,
                                      state->exit_us, state->name),
                          fmt::format("cpupower --cpu {} idle-set --disable-by-latency {}",
                                      cpu->cpu.id, kLongestExitUs + 1)});
    }
  }
  if (const auto cpus = packet_cpus(given, Sleeping::no); !cpus.empty()) {
    findings.push_back(
        {Rank::fine, fmt::format("lcores that spin use none: CPU {}",
                                 listed(ids_of(cpus, [](const CpuFacts&) { return true; })))});
  }
  return findings;
}

} // namespace weir::server
