// SPDX-License-Identifier: BSD-3-Clause
#include "server/questions.hpp"

#include "server/asks.hpp"

#include <array>

namespace weir::server {
namespace {

constexpr std::array kQuestions{
    Question{"device", ask_devices},
    Question{"driver", ask_drivers},
    Question{"IOMMU", ask_iommu},
    Question{"firmware", ask_firmware},
    Question{"slot", ask_slots},
    Question{"hugepages", ask_hugepages},
    Question{"locked memory", ask_locked_memory},
    Question{"CPUs", ask_cpus},
    Question{"CPU time", ask_cpu_time},
    Question{"isolation", ask_isolation},
    Question{"hardware threads", ask_siblings},
    Question{"clock", ask_governors},
    Question{"idle states", ask_idle_states},
    Question{"NUMA", ask_numa},
    Question{"link", ask_links},
    Question{"MTU", ask_mtu},
    Question{"pause", ask_pause},
    Question{"control socket", ask_sockets},
    Question{"certificates", ask_certificates},
};

} // namespace

std::span<const Question> questions() {
  return kQuestions;
}

} // namespace weir::server
