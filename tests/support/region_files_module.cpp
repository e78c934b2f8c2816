// SPDX-License-Identifier: BSD-3-Clause

/// In place of libweir_switch.so, where hosts reach no control service: prints "wanted " and the
/// order of a region, as JSON of HoldRegion, and waits for files of /run. region.made is the
/// answer, as "ID IP MAC BASE KEY WINDOW PATIENCE", "QUEUE_PAIR FIRST_PSN TOKEN" of each
/// member, and the keys of the views; region.ended is why the region has ended. Rings are the
/// configuration's.

#include "host/switch_rings/module.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <unistd.h>

namespace {

constexpr auto kStep = std::chrono::milliseconds(20);
constexpr const char* kMade = "/run/region.made";
constexpr const char* kEnded = "/run/region.ended";

} // namespace

/// Of a region it watches for the end.
struct weir_hold {
  weir_hold() = default;

  explicit weir_hold(const weir_hold_order& order)
      : thread_([this, ended = order.ended, user = order.user] {
          while (!is_over_ && access(kEnded, F_OK) != 0) {
            std::this_thread::sleep_for(kStep);
          }
          if (!is_over_) {
            std::ifstream file(kEnded);
            std::string why;
            std::getline(file, why);
            ended(user, why.c_str());
          }
        }) {}

  ~weir_hold() {
    is_over_ = true;
    if (thread_.joinable()) {
      thread_.join();
    }
  }

  weir_hold(const weir_hold&) = delete;
  weir_hold& operator=(const weir_hold&) = delete;

 private:
  std::atomic<bool> is_over_ = false;
  std::thread thread_;
};

namespace {

std::string text_of(const weir_hold_order& order, const weir_hold_region& region) {
  std::ostringstream text;
  text << R"({"bytes": )" << region.bytes << R"(, "mtu": )" << order.mtu << R"(, "window": )"
       << order.window << R"(, "entries": )" << region.entries << R"(, "loopback": )"
       << (region.loopback != 0 ? "true" : "false") << R"(, "patience": )" << region.patience
       << R"(, "forming": )" << region.forming << R"(, "views": [)";
  for (std::size_t view = 0; view < region.view_count; ++view) {
    text << (view == 0 ? "" : ", ") << R"({"operation": ")" << region.views[view].operation
         << R"(", "type": ")" << region.views[view].type << R"("})";
  }
  text << R"(], "members": [)";
  for (std::size_t rank = 0; rank < order.member_count; ++rank) {
    const weir_hold_region_member& member = region.members[rank];
    text << (rank == 0 ? "" : ", ") << R"({"ip": ")" << order.members[rank]
         << R"(", "queue_pair": )" << member.queue_pair << R"(, "first_psn": )" << member.first_psn
         << R"(, "base": )" << member.base << R"(, "key": )" << member.key << R"(, "ack_timeout": )"
         << member.ack_timeout << R"(, "reads": )" << member.reads << "}";
  }
  text << "]}";
  return text.str();
}

bool read_token(std::istream& stream, weir_held_region_end& end) {
  std::string token;
  stream >> token;
  if (token.size() != 2 * sizeof end.token) {
    return false;
  }
  for (std::size_t byte = 0; byte < sizeof end.token; ++byte) {
    end.token[byte] = static_cast<std::uint8_t>(std::stoul(token.substr(2 * byte, 2), nullptr, 16));
  }
  return true;
}

bool read_answer(std::istream& stream, const weir_hold_order& order, const weir_hold_region& region,
                 weir_held_region& held) {
  std::string ip;
  std::string mac;
  stream >> held.id >> ip >> mac >> held.base >> held.key >> held.window >> held.patience;
  std::snprintf(held.ip, sizeof held.ip, "%s", ip.c_str());
  std::snprintf(held.mac, sizeof held.mac, "%s", mac.c_str());
  bool is_whole = true;
  for (std::size_t rank = 0; rank < order.member_count; ++rank) {
    stream >> held.ends[rank].queue_pair >> held.ends[rank].first_psn;
    is_whole = is_whole && read_token(stream, held.ends[rank]);
  }
  for (std::size_t view = 0; view < region.view_count; ++view) {
    stream >> held.view_keys[view];
  }
  return is_whole && !stream.fail();
}

weir_hold* hold(const weir_hold_order* order, weir_held_ring* held, char*, std::size_t) {
  *held = {order->id, 1};
  return new weir_hold;
}

weir_hold* hold_job(const weir_hold_order*, weir_job_rings*, char* why, std::size_t why_bytes) {
  std::snprintf(why, why_bytes, "there is no manager");
  return nullptr;
}

weir_hold* hold_region(const weir_hold_order* order, const weir_hold_region* region,
                       weir_held_region* held, char* why, std::size_t why_bytes) {
  std::printf("wanted %s\n", text_of(*order, *region).c_str());
  std::fflush(stdout);
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(order->timeout_ms);
  while (access(kMade, F_OK) != 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kStep);
  }
  std::ifstream file(kMade);
  if (!read_answer(file, *order, *region, *held)) {
    std::snprintf(why, why_bytes, "%s has no answer", kMade);
    return nullptr;
  }
  return new weir_hold(*order);
}

void release(weir_hold* hold) {
  delete hold;
}

} // namespace

const weir_switch_module* weir_switch_module_of() {
  static constexpr weir_switch_module module{WEIR_SWITCH_MODULE_VERSION, hold, hold_job,
                                             hold_region, release};
  return &module;
}
