// SPDX-License-Identifier: BSD-3-Clause

/// In place of libweir_switch.so. It writes what it is asked to a file, a line each. The address
/// says which file, and what a switch there does, which has three workers:
///   unix:FILE           makes each ring, with the id 40 + the number of the line if it may choose
///   unix:FILE:refuse    makes one ring and no second
///   unix:FILE:end       makes each ring and ends it at once
///   unix:FILE:wait      makes none as long as the caller waits

#include "host/switch_rings/module.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

struct weir_hold {
  std::string file;
  std::uint32_t id;
};

namespace {

constexpr std::string_view kScheme = "unix:";
constexpr std::uint32_t kBeforeFirstId = 40;
constexpr std::uint32_t kWorkers = 3;
constexpr std::size_t kRoom = 2;

std::uint32_t lines_of(const std::string& file) {
  std::ifstream stream(file);
  std::uint32_t lines = 0;
  for (std::string line; std::getline(stream, line);) {
    ++lines;
  }
  return lines;
}

void note(const std::string& file, const std::string& line) {
  std::ofstream(file, std::ios::app) << line << "\n";
}

std::string text_of(const weir_hold_order& order) {
  std::string text =
      order.id_is == WEIR_HOLD_ID_CHOSEN ? "make any" : "make " + std::to_string(order.id);
  text += " nonce " + std::to_string(order.nonce) + " window " + std::to_string(order.window) +
          " bytes " + std::to_string(order.message_bytes) + " mtu " + std::to_string(order.mtu) +
          " of";
  for (std::size_t rank = 0; rank < order.member_count; ++rank) {
    text += std::string(" ") + order.members[rank];
  }
  for (const char* const file : {order.certificate, order.key, order.authority, order.name}) {
    text += *file == '\0' ? "" : std::string(" ") + file;
  }
  return text;
}

weir_hold* hold(const weir_hold_order* order, weir_held_ring* held, char* why,
                std::size_t why_bytes) {
  const std::string server = std::string(order->server).substr(kScheme.size());
  const std::string file = server.substr(0, server.find(':'));
  const std::string_view way = std::string_view(server).substr(file.size());
  note(file, text_of(*order));
  held->id = order->id_is == WEIR_HOLD_ID_CHOSEN ? kBeforeFirstId + lines_of(file) : order->id;
  held->workers = kWorkers;
  if (way == ":refuse" && lines_of(file) > 1) {
    std::snprintf(why, why_bytes, "there is no room");
    return nullptr;
  }
  if (way == ":wait") {
    while (order->is_stopped(order->user) == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    note(file, "stopped");
    std::snprintf(why, why_bytes, "the caller needs no ring any more");
    return nullptr;
  }
  if (way == ":end") {
    order->ended(order->user, "it was withdrawn");
  }
  return new weir_hold{file, held->id};
}

/// As a manager that has room for two: all rings by one order.
weir_hold* hold_job(const weir_hold_order* order, weir_job_rings* rings, char*, std::size_t) {
  const std::string file = std::string(order->server).substr(kScheme.size());
  note(file, "job of " + std::to_string(rings->least) + " to " + std::to_string(rings->wanted) +
                 ": " + text_of(*order));
  rings->made = std::max(rings->least, std::min(rings->wanted, kRoom));
  for (std::size_t ring = 0; ring < rings->made; ++ring) {
    rings->ids[ring] = static_cast<std::uint32_t>(kBeforeFirstId + 1 + ring);
  }
  return new weir_hold{file, static_cast<std::uint32_t>(rings->made)};
}

weir_hold* hold_region(const weir_hold_order*, const weir_hold_region*, weir_held_region*,
                       char* why, std::size_t why_bytes) {
  std::snprintf(why, why_bytes, "it makes no regions");
  return nullptr;
}

void release(weir_hold* hold) {
  note(hold->file, "end " + std::to_string(hold->id));
  delete hold;
}

} // namespace

const weir_switch_module* weir_switch_module_of() {
  static constexpr weir_switch_module module{WEIR_SWITCH_MODULE_VERSION, hold, hold_job,
                                             hold_region, release};
  return &module;
}
