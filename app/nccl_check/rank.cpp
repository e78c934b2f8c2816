// SPDX-License-Identifier: BSD-3-Clause
#include "nccl_check/rank.hpp"

#include "nccl_check/coll_transport.hpp"
#include "nccl_check/plug_in.hpp"
#include "output.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace weir::nccl_check {
namespace {

constexpr int kDevice = 0;
constexpr int kChannels = 8;
constexpr std::size_t kSlotBytes = 128 << 10;

/// Types whose sums of up to 256 small numbers are exact.
struct Checked {
  const char* name;
  int type;
};

constexpr std::array<Checked, 3> kChecked{{{"f32", kFloat32}, {"f16", kFloat16}, {"i32", kInt32}}};
constexpr Operation kEach{
    .operation = kSum, .channels = kChannels, .steps = 4, .chunk_bytes = kSlotBytes};

/// NCCL has one logger for a process, without a context.
struct Log {
  bool tells = false; // all; otherwise warnings alone
  std::string last_warning;
};

Log& log() {
  static Log only;
  return only;
}

void take_line(nccl::LogLevel level, unsigned long, const char*, int, const char* format, ...) {
  std::array<char, 1024> line{};
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line.data(), line.size(), format, arguments);
  va_end(arguments);
  const bool is_warning = level == nccl::LogLevel::warn;
  if (is_warning) {
    log().last_warning = line.data();
  }
  if (is_warning || log().tells) {
    app::say(fmt::format("{} {}\n", is_warning ? "WARN" : "INFO", line.data()));
  }
}

/// As NCCL looks for it.
std::string file_of(const Options& options) {
  const char* const given = std::getenv("NCCL_NET_PLUGIN");
  const std::string name = given == nullptr || *given == '\0' ? "weir" : given;
  const std::string file = name.ends_with(".so") ? name : fmt::format("libnccl-net-{}.so", name);
  return options.plug_in.empty() ? file : options.plug_in;
}

/// Of the plug-in's calls. What it has warned of is why.
void demand(const char* call, nccl::Result result) {
  if (result != nccl::Result::success) {
    throw std::runtime_error(fmt::format("{}: result {}{}{}", call, static_cast<int>(result),
                                         log().last_warning.empty() ? "" : ": ",
                                         log().last_warning));
  }
}

/// Throws std::runtime_error if the plug-in is not used here.
void begin(PlugIn& plug_in) {
  if (!plug_in.net() || plug_in.init_net() != nccl::Result::success) {
    throw std::runtime_error("the plug-in refuses, so NCCL would go on without it");
  }
  demand("init", plug_in.coll().init());
  int devices = 0;
  demand("devices", plug_in.coll().devices(&devices));
  if (devices == 0) {
    throw std::runtime_error("the plug-in has no device");
  }
}

struct Listener {
  Handle handle{};
  void* listener = nullptr;
};

Listener listen(const CollNet& coll) {
  Listener listener;
  demand("listen", coll.listen(kDevice, listener.handle.data(), &listener.listener));
  return listener;
}

/// Until closeColl.
class Communicator {
 public:
  Communicator(const CollNet& coll, const Listener& own_end, Meeting& meeting, Place own)
      : coll_(coll) {
    std::vector<Handle> handles = meeting.all_gather(own_end.handle);
    std::vector<void*> pointers;
    pointers.reserve(handles.size());
    for (Handle& each : handles) {
      pointers.push_back(each.data());
    }
    demand("connect", coll_.body.connect(pointers.data(), static_cast<int>(own.ranks),
                                         static_cast<int>(own.rank), own_end.listener, &comm_));
    demand("closeListen", coll_.body.close_listener(own_end.listener));
  }

  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  ~Communicator() {
    if (comm_ != nullptr) {
      coll_.body.close_comm(comm_);
    }
  }

  void* get() const { return comm_; }

 private:
  const CollNet& coll_;
  void* comm_ = nullptr;
};

/// Bytes of a rank.
std::uint64_t sum_everything(const CollNet& coll, void* comm, Place own, std::uint32_t repeat) {
  CollTransport transport(coll, comm, static_cast<int>(own.rank), static_cast<int>(own.ranks),
                          kChannels, kSlotBytes);
  for (std::uint32_t round = 0; round < repeat; ++round) {
    for (const Checked& each : kChecked) {
      Operation operation = kEach;
      operation.type = each.type;
      transport.run(operation);
    }
  }
  transport.forget_memory();
  return repeat * kChecked.size() * kEach.steps * kChannels * kSlotBytes;
}

std::string names_of_types() {
  std::string names;
  for (const Checked& each : kChecked) {
    names += names.empty() ? each.name : std::string(", ") + each.name;
  }
  return names;
}

} // namespace

void check_rank(const Options& options, Place own, const host::Endpoint& meet) {
  log().tells = own.rank == 0;
  Meeting meeting(meet, own, host::deadline_after(host::Clock::now(), options.wait));
  std::optional<PlugIn> plug_in;
  Listener listener;
  try {
    plug_in.emplace(file_of(options).c_str(), options.tables, take_line);
    begin(*plug_in);
    listener = listen(plug_in->coll());
  } catch (const std::exception& error) {
    meeting.decline(log().last_warning.empty() ? error.what() : log().last_warning);
    throw;
  }
  std::uint64_t bytes = 0;
  {
    const Communicator comm(plug_in->coll(), listener, meeting, own);
    bytes = sum_everything(plug_in->coll(), comm.get(), own, options.repeat);
  }
  demand("finalize", plug_in->coll().finalize());
  demand("finalize", plug_in->net()->finalize());
  if (own.rank == 0) {
    app::say(
        fmt::format("weir-nccl-check: {} ranks, {} MiB of each summed as {}, every element exact\n",
                    own.ranks, bytes >> 20, names_of_types()));
  }
}

} // namespace weir::nccl_check
