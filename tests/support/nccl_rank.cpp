// SPDX-License-Identifier: BSD-3-Clause

/// One rank that drives a network plug-in as NCCL does, without NCCL and without a GPU.
///
///   nccl_rank PLUG-IN VERSION RANK WORLD FOLDER SCENARIO
///
/// VERSION is of the plug-in's tables, 8 to 12. The ranks hand one another their handles by files
/// in FOLDER. Ends with "nccl_rank: SCENARIO ended well" and status 0.
///
/// - init: only begins, for what NCCL hears of the plug-in and its devices
/// - sum: every type and operation, then 12 channels with all slots in use, and a second
///   communicator
/// - brief: less of the same, for slow hosts: slots of 4 KiB, and every operation of f32 alone
/// - late: reduces, and reduces again, the last rank not before FOLDER has the file `go`
/// - loop: reduces until something ends it
/// - unlike: the same; the last rank's calls are shorter than the others'
/// - die: the last rank is killed during calls
/// - close: the last rank frees its memory and closes during calls
/// - absent: the last rank does not connect
/// - pair: point-to-point between two ranks

#include "nccl_check/coll_transport.hpp"
#include "nccl_pair.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace weir::nccl_test {
namespace {

namespace fs = std::filesystem;
using namespace nccl_check;

constexpr std::size_t kSlotBytes = 64 << 10; // NCCL's 512 KiB take a test too long
constexpr std::size_t kBriefSlotBytes = 4 << 10;
constexpr int kChannels = 12;
constexpr Operation kLong{.channels = kChannels, .steps = 1000, .chunk_bytes = 4 << 10};
constexpr int kInTheMiddle = 10;
constexpr int kManyCalls = CollTransport::kSlots / 2;

void print_line(nccl::LogLevel level, unsigned long, const char*, int, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  std::fputs(level == nccl::LogLevel::warn ? "WARN " : "INFO ", stdout);
  std::vprintf(format, arguments);
  std::puts("");
  std::fflush(stdout);
  va_end(arguments);
}

struct Rank {
  Rank(char** arguments)
      : version(arguments[2]), plug_in(arguments[1], std::atoi(version), print_line),
        rank(std::atoi(arguments[3])), world(std::atoi(arguments[4])), folder(arguments[5]),
        scenario(arguments[6]) {}

  bool is_last() const { return rank == world - 1; }

  bool is_brief() const { return scenario == "brief"; }

  std::size_t slot_bytes() const { return is_brief() ? kBriefSlotBytes : kSlotBytes; }

  /// All slots of all channels in use.
  Operation wide() const {
    return {.channels = kChannels, .steps = is_brief() ? 10 : 20, .chunk_bytes = slot_bytes()};
  }

  const char* version;
  PlugIn plug_in;
  int rank;
  int world;
  fs::path folder;
  std::string scenario;
};

void wait_for_file(const fs::path& file) {
  while (!fs::exists(file)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

/// Of init, as the first of what NCCL does for a communicator. Whether the plug-in is used.
bool begin(Rank& self) {
  if (!self.plug_in.net()) {
    throw std::runtime_error("there is no ncclNetPlugin_v" + std::string(self.version));
  }
  const Result result = self.plug_in.init_net();
  const Net& net = *self.plug_in.net();
  if (result != Result::success) {
    std::cout << "init: net " << net.name << " refuses, result " << static_cast<int>(result)
              << '\n';
    return false;
  }
  expect_success("init", self.plug_in.coll().init());
  int net_devices = 0;
  int coll_devices = 0;
  expect_success("devices", net.devices(&net_devices));
  expect_success("devices", self.plug_in.coll().devices(&coll_devices));
  for (int device = 0; device < coll_devices; ++device) {
    nccl::PropertiesV12 nets{};
    nccl::PropertiesV12 colls{};
    expect_success("getProperties", net.properties(device, nets));
    expect_success("getProperties", self.plug_in.coll().properties(device, colls));
    std::cout << "init: net " << net.name << " device " << device << " of " << net_devices << ": "
              << nets.base.name << ", CollNet's " << colls.base.name << ", speed "
              << colls.base.speed << ", memory " << nets.base.pointer_support << " and "
              << colls.base.pointer_support << '\n';
  }
  return true;
}

class Communicator {
 public:
  Communicator(const Rank& self, std::string name) : self_(self), name_(std::move(name)) {
    expect_success("listen", coll().listen(0, handles_.at(self.rank).data(), &listener_));
    share();
  }

  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  Result connect() {
    std::vector<void*> pointers;
    for (auto& [rank, handle] : handles_) {
      pointers.push_back(handle.data());
    }
    const Result result =
        coll().body.connect(pointers.data(), self_.world, self_.rank, listener_, &comm_);
    if (result == Result::success) {
      expect_success("closeListen", coll().body.close_listener(listener_));
    }
    return result;
  }

  void close() { expect_success("closeColl", coll().body.close_comm(comm_)); }

  void* get() const { return comm_; }

  const CollNet& coll() const { return self_.plug_in.coll(); }

 private:
  using Handle = std::array<char, nccl::kHandleBytes>;

  fs::path file_of(int rank) const { return self_.folder / (name_ + std::to_string(rank)); }

  /// The all-gather of NCCL's bootstrap.
  void share() {
    const fs::path mine = file_of(self_.rank);
    std::ofstream(mine.string() + ".new", std::ios::binary)
        .write(handles_.at(self_.rank).data(), nccl::kHandleBytes);
    fs::rename(mine.string() + ".new", mine);
    for (auto& [rank, handle] : handles_) {
      wait_for_file(file_of(rank));
      std::ifstream(file_of(rank), std::ios::binary).read(handle.data(), nccl::kHandleBytes);
    }
  }

  std::map<int, Handle> no_handles() const {
    std::map<int, Handle> handles;
    for (int rank = 0; rank < self_.world; ++rank) {
      handles[rank] = {};
    }
    return handles;
  }

  const Rank& self_;
  std::string name_;
  std::map<int, Handle> handles_ = no_handles();
  void* listener_ = nullptr;
  void* comm_ = nullptr;
};

void expect_support(const CollNet& coll) {
  for (int type = -1; type <= kTypes; ++type) {
    for (int operation = -1; operation <= kOperations; ++operation) {
      int supported = -1;
      expect_success("reduceSupport", coll.body.reduce_support(type, operation, &supported));
      const bool due = type >= 0 && type < kTypes && operation >= 0 && operation < kOperations;
      if (supported != (due ? 1 : 0)) {
        throw std::runtime_error("reduceSupport of type " + std::to_string(type) + ", operation " +
                                 std::to_string(operation) + ": found " +
                                 std::to_string(supported));
      }
    }
  }
}

void expect_refusals(const Communicator& comm) {
  const auto& memory = comm.coll().body.memory;
  std::array<char, 64> bytes{};
  void* known = nullptr;
  constexpr int gpus = 2;
  if (memory.register_memory(comm.get(), bytes.data(), bytes.size(), gpus, &known) ==
          Result::success ||
      memory.register_dma_buf(comm.get(), bytes.data(), bytes.size(), gpus, 0, 0, &known) ==
          Result::success) {
    throw std::runtime_error("memory of a GPU is taken");
  }
  expect_success("regMr", memory.register_memory(comm.get(), bytes.data(), bytes.size() / 2,
                                                 nccl::kHostMemory, &known));
  void* request = nullptr;
  if (comm.coll().iallreduce(comm.get(), bytes.data(), bytes.data(), bytes.size(), 0, kSum, known,
                             known, &request) == Result::success) {
    throw std::runtime_error("a buffer outside of its memory is taken");
  }
  expect_success("deregMr", memory.deregister_memory(comm.get(), known));
}

/// A second communicator of the same ranks, while the first one's buffers stay known.
void reduce_by_another_ring(const Rank& self) {
  Communicator comm(self, "other");
  expect_success("connect", comm.connect());
  CollTransport transport(comm.coll(), comm.get(), self.rank, self.world, 1, self.slot_bytes());
  transport.run({.channels = 1, .steps = 3, .chunk_bytes = self.slot_bytes()});
  transport.forget_memory();
  comm.close();
}

void reduce_everything(const Rank& self, const Communicator& comm, CollTransport& transport) {
  expect_support(comm.coll());
  expect_refusals(comm);
  for (int type = 0; type < kTypes; ++type) {
    for (int operation = 0; operation < kOperations; ++operation) {
      if (self.is_brief() && type != kFloat32 && operation != kSum) {
        continue;
      }
      transport.run({.type = type,
                     .operation = operation,
                     .channels = 2,
                     .steps = 2,
                     .chunk_bytes = 1 << 10});
    }
  }
  reduce_by_another_ring(self);
  transport.run(self.wide());
}

/// Stops the proxy as ncclCommAbort does.
struct Stop {};

void stop_or_die(const Rank& self, int done, int under_way) {
  if (done < kInTheMiddle || under_way < kManyCalls || !self.is_last()) {
    return;
  }
  if (self.scenario == "die") {
    std::raise(SIGKILL);
  }
  throw Stop();
}

/// The others hear of it by the next test.
void reduce_until_somebody_goes(const Rank& self, CollTransport& transport) {
  try {
    transport.run(kLong, [&](int done, int under_way) { stop_or_die(self, done, under_way); });
  } catch (const Stop&) {
    return;
  } catch (const std::runtime_error& error) {
    std::cout << "ended: " << error.what() << '\n';
    return;
  }
  throw std::runtime_error("nobody went");
}

void reduce_until_the_end(const Rank& self, CollTransport& transport) {
  Operation calls = kLong;
  if (self.scenario == "unlike" && self.is_last()) {
    calls.chunk_bytes /= 2;
  }
  try {
    while (true) {
      transport.run(calls);
    }
  } catch (const std::runtime_error& error) {
    std::cout << "ended: " << error.what() << '\n';
  }
}

void work(const Rank& self, const Communicator& comm, CollTransport& transport) {
  if (self.scenario == "sum" || self.is_brief()) {
    reduce_everything(self, comm, transport);
  } else if (self.scenario == "late") {
    transport.run(self.wide());
    if (self.is_last()) {
      wait_for_file(self.folder / "go");
    }
    transport.run(self.wide());
  } else if (self.scenario == "loop" || self.scenario == "unlike") {
    reduce_until_the_end(self, transport);
  } else {
    reduce_until_somebody_goes(self, transport);
  }
}

/// A program's own buffer: to forget it ends no call of others.
void know_and_forget(const Communicator& comm) {
  std::array<char, 64> bytes{};
  void* known = nullptr;
  const auto& memory = comm.coll().body.memory;
  expect_success("regMr", memory.register_memory(comm.get(), bytes.data(), bytes.size(),
                                                 nccl::kHostMemory, &known));
  expect_success("deregMr", memory.deregister_memory(comm.get(), known));
  const bool is_slow_host = std::thread::hardware_concurrency() == 1;
  std::this_thread::sleep_for(std::chrono::milliseconds(is_slow_host ? 200 : 5));
}

void reduce(const Rank& self) {
  Communicator comm(self, "first");
  if (self.scenario == "absent" && self.is_last()) {
    return;
  }
  if (const Result result = comm.connect(); result != Result::success) {
    std::cout << "connect: result " << static_cast<int>(result) << '\n';
    return;
  }
  CollTransport transport(comm.coll(), comm.get(), self.rank, self.world, kChannels,
                          self.slot_bytes());
  // NCCL's thread for progress is another than the one that connects, registers and closes.
  std::exception_ptr error;
  std::atomic<bool> is_at_work = true;
  std::jthread progress([&] {
    try {
      work(self, comm, transport);
    } catch (...) {
      error = std::current_exception();
    }
    is_at_work = false;
  });
  while (is_at_work) {
    know_and_forget(comm);
  }
  progress.join();
  if (error) {
    std::rethrow_exception(error);
  }
  if (self.scenario != "close") {
    transport.forget_memory();
  }
  comm.close();
}

void play(Rank& self) {
  if (begin(self) && self.scenario != "init") {
    if (self.scenario == "pair") {
      talk(*self.plug_in.net(), self.rank, self.folder);
    } else {
      reduce(self);
    }
    expect_success("finalize", self.plug_in.coll().finalize());
    expect_success("finalize", self.plug_in.net()->finalize());
  }
  std::cout << "nccl_rank: " << self.scenario << " ended well\n";
}

} // namespace
} // namespace weir::nccl_test

int main(int count, char** arguments) {
  constexpr int kWords = 7;
  if (count != kWords) {
    std::cout << "nccl_rank PLUG-IN VERSION RANK WORLD FOLDER SCENARIO\n";
    return 2;
  }
  try {
    weir::nccl_test::Rank self(arguments);
    weir::nccl_test::play(self);
  } catch (const std::exception& error) {
    std::cout << "nccl_rank: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
