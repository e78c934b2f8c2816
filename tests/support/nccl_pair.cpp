// SPDX-License-Identifier: BSD-3-Clause
#include "nccl_pair.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iostream>
#include <thread>
#include <vector>

namespace weir::nccl_test {
namespace {

namespace fs = std::filesystem;
using namespace nccl_check;
using Handle = std::array<char, nccl::kHandleBytes>;

// The first is empty; the long ones do not fit into the kernel's buffers.
constexpr std::array<std::size_t, 6> kSizes{0, 1, 4096, 3'000'000, 17, 1'000'003};
constexpr int kMessages = 60;

std::size_t size_of(int message) {
  return kSizes.at(static_cast<std::size_t>(message) % kSizes.size());
}

/// Pairs of messages have tags that the receiver asks for in the other order.
int tag_of(int message) {
  return message % 2 + 7;
}

int asked_for(int message) {
  return message ^ 1;
}

char byte_of(int message, std::size_t index) {
  return static_cast<char>(index * 31 + static_cast<std::size_t>(message));
}

struct Transfer {
  std::vector<char> bytes;
  void* request = nullptr;
};

void* memory_of(const Net& net, void* comm) {
  std::array<char, 1> byte{};
  void* memory = nullptr;
  expect_success("regMr",
                 net.memory.register_memory(comm, byte.data(), 1, nccl::kHostMemory, &memory));
  return memory;
}

/// Runs through the messages, as many at once as the plug-in takes, and tests in their order.
template <typename Start, typename Look>
int move_all(const Net& net, const Start& start, const Look& look) {
  std::vector<Transfer> transfers(kMessages);
  int started = 0;
  int most = 0;
  for (int done = 0; done < kMessages;) {
    while (started < kMessages && start(started, transfers[static_cast<std::size_t>(started)])) {
      ++started;
    }
    most = std::max(most, started - done);
    int is_done = 0;
    int size = -1;
    Transfer& oldest = transfers[static_cast<std::size_t>(done)];
    expect_success("test", net.end.test(oldest.request, &is_done, &size));
    if (is_done != 0) {
      look(done++, oldest, static_cast<std::size_t>(size));
    } else {
      std::this_thread::yield();
    }
  }
  return most;
}

Result end_of(const Net& net, void* request) {
  int done = 0;
  while (true) {
    const Result result = net.end.test(request, &done, nullptr);
    if (result != Result::success || done != 0) {
      return result;
    }
    std::this_thread::yield();
  }
}

void send_all(const Net& net, void* comm) {
  void* const memory = memory_of(net, comm);
  const auto start = [&](int message, Transfer& transfer) {
    transfer.bytes.resize(size_of(message));
    for (std::size_t index = 0; index < transfer.bytes.size(); ++index) {
      transfer.bytes[index] = byte_of(message, index);
    }
    expect_success("isend", net.isend(comm, transfer.bytes.data(), transfer.bytes.size(),
                                      tag_of(message), memory, &transfer.request));
    return transfer.request != nullptr;
  };
  const int most = move_all(net, start, [](int message, const Transfer&, std::size_t size) {
    if (size != size_of(message)) {
      throw std::runtime_error("isend: found a size of " + std::to_string(size));
    }
  });
  std::cout << "pair: at most " << most << " sends at once\n";
  std::vector<char> too_long(100);
  void* request = nullptr;
  expect_success("isend", net.isend(comm, too_long.data(), too_long.size(), 1, memory, &request));
  end_of(net, request); // the kernel has it
}

void receive_all(const Net& net, void* comm) {
  void* const memory = memory_of(net, comm);
  const auto start = [&](int message, Transfer& transfer) {
    const int due = asked_for(message);
    transfer.bytes.assign(size_of(due) + 3, 'x');
    transfer.request = reinterpret_cast<void*>(1); // NCCL's hint that completion is optional
    expect_success("irecv", net.irecv(comm, transfer.bytes.data(), transfer.bytes.size(),
                                      tag_of(due), memory, &transfer.request));
    return transfer.request != nullptr;
  };
  move_all(net, start, [](int message, const Transfer& transfer, std::size_t size) {
    const int due = asked_for(message);
    if (size != size_of(due)) {
      throw std::runtime_error("irecv: found a size of " + std::to_string(size) + ", due " +
                               std::to_string(size_of(due)));
    }
    for (std::size_t index = 0; index < transfer.bytes.size(); ++index) {
      if (transfer.bytes[index] != (index < size ? byte_of(due, index) : 'x')) {
        throw std::runtime_error("irecv: message " + std::to_string(due) + ", byte " +
                                 std::to_string(index));
      }
    }
  });
  std::vector<char> too_short(99);
  void* request = nullptr;
  Result result = net.irecv(comm, too_short.data(), too_short.size(), 1, memory, &request);
  if (result == Result::success) { // it has not come yet
    result = end_of(net, request);
  }
  std::cout << "pair: too long a message ends with result " << static_cast<int>(result) << '\n';
}

void listen_and_receive(const Net& net, const fs::path& file) {
  Handle handle{};
  void* listener = nullptr;
  void* comm = nullptr;
  expect_success("listen", net.listen(0, handle.data(), &listener));
  // Who does not know the handle's secret comes first, and is turned away.
  Handle strange = handle;
  strange[8] ^= 1;
  void* stranger = nullptr;
  while (stranger == nullptr) {
    expect_success("connect", net.connect(0, strange.data(), &stranger));
  }
  std::ofstream(file.string() + ".new", std::ios::binary).write(handle.data(), nccl::kHandleBytes);
  fs::rename(file.string() + ".new", file);
  while (comm == nullptr) {
    expect_success("accept", net.accept(listener, &comm, nullptr));
  }
  expect_success("closeListen", net.end.close_listener(listener));
  receive_all(net, comm);
  expect_success("closeRecv", net.end.close_receive(comm));
  expect_success("closeSend", net.end.close_send(stranger));
}

void connect_and_send(const Net& net, const fs::path& file) {
  while (!fs::exists(file)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  Handle handle{};
  std::ifstream(file, std::ios::binary).read(handle.data(), nccl::kHandleBytes);
  Handle foreign{};
  void* comm = nullptr;
  if (net.connect(0, foreign.data(), &comm) == Result::success) {
    throw std::runtime_error("connect: a foreign handle is taken");
  }
  while (comm == nullptr) {
    expect_success("connect", net.connect(0, handle.data(), &comm));
  }
  send_all(net, comm);
  expect_success("closeSend", net.end.close_send(comm));
}

} // namespace

void talk(const Net& net, int rank, const fs::path& folder) {
  const fs::path file = folder / "handle";
  if (rank == 0) {
    listen_and_receive(net, file);
  } else {
    connect_and_send(net, file);
  }
}

} // namespace weir::nccl_test
