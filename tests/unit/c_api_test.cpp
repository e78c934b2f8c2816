// SPDX-License-Identifier: BSD-3-Clause

/// The C API and its C++ header as a caller sees them, without a network. tests/support/c_rank.c
/// and docs/examples/ reduce with them.

#include "support/comes_true.hpp"
#include "weir/weir.h"
#include "weir/weir.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <gmock/gmock.h>
#include <memory>
#include <poll.h>
#include <span>
#include <string>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace weir::c_api_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

weir_context_options software() {
  weir_context_options options;
  weir_context_options_init(&options);
  options.device = "no-such-device";
  options.ip = "10.0.0.1";
  return options;
}

/// A context that every test may have, because only groups open the device.
class CApi : public testing::Test {
 protected:
  CApi() {
    const weir_context_options options = software();
    EXPECT_EQ(weir_context_open(&options, &context_), WEIR_OK) << weir_last_error();
    weir_group_options_init(&options_);
    options_.rendezvous = "127.0.0.1:1";
  }

  ~CApi() override { weir_context_close(context_); }

  /// The status of forming a group, which fails in every test here.
  weir_status form() {
    weir_group* group = nullptr;
    const weir_status status = weir_group_form(context_, &options_, &group);
    EXPECT_EQ(group, nullptr);
    return status;
  }

  weir_context* context_ = nullptr;
  weir_group_options options_{};
};

int no_all_gather(void*, const void*, std::size_t, void*) {
  return 1;
}

int refusing_all_gather(void* user, const void*, std::size_t bytes, void*) {
  *static_cast<std::size_t*>(user) += bytes;
  return 7;
}

/// The other ranks call their all-gather, so this one does as well.
TEST_F(CApi, TellsTheOthersByTheAllGatherThatItsDeviceIsMissing) {
  std::size_t bytes = 0;
  options_.rendezvous = nullptr;
  options_.all_gather = refusing_all_gather;
  options_.all_gather_user = &bytes;
  EXPECT_EQ(form(), WEIR_TRANSPORT_FAILURE);
  EXPECT_GT(bytes, 0);
  EXPECT_THAT(weir_last_error(), HasSubstr("no-such-device")) << "not the all-gather's error";
}

/// A wrong option as well, unless it leaves no place in the all-gather.
TEST_F(CApi, TellsTheOthersByTheAllGatherThatAnOptionIsWrong) {
  std::size_t bytes = 0;
  options_.all_gather = refusing_all_gather;
  options_.all_gather_user = &bytes;
  options_.window = 0;
  EXPECT_EQ(form(), WEIR_INVALID_ARGUMENT);
  EXPECT_GT(bytes, 0);
  bytes = 0;
  options_.rank = options_.world;
  EXPECT_EQ(form(), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(bytes, 0);
}

TEST_F(CApi, NoGroupHasNoProperties) {
  EXPECT_EQ(weir_group_rank(nullptr), 0);
  EXPECT_EQ(weir_group_world(nullptr), 0);
  EXPECT_EQ(weir_group_epoch(nullptr), 0);
  EXPECT_STREQ(weir_group_algorithm(nullptr), "");
  EXPECT_STREQ(weir_group_address(nullptr), "");
  EXPECT_STREQ(weir_group_fallback_reason(nullptr), "");
  EXPECT_STREQ(weir_group_missing_rings(nullptr), "");
  EXPECT_EQ(weir_group_rings(nullptr, nullptr, 0), 0);
  EXPECT_EQ(weir_group_parent_rank(nullptr, 0), -1);
  EXPECT_EQ(weir_group_leader(nullptr, 0), -1);
  EXPECT_EQ(weir_group_descriptor(nullptr), -1);
}

/// A group of one rank needs no network.
TEST_F(CApi, HandsOutTheGroupThatWasFormedMeanwhile) {
  options_.world = 1;
  weir_forming* forming = nullptr;
  ASSERT_EQ(weir_start_group_form(context_, &options_, &forming), WEIR_OK) << weir_last_error();
  EXPECT_EQ(weir_forming_wait_for(forming, 60'000), WEIR_OK);
  EXPECT_EQ(weir_forming_test(forming), WEIR_OK);
  EXPECT_GE(weir_forming_descriptor(forming), 0);
  weir_group* group = nullptr;
  ASSERT_EQ(weir_forming_take(forming, &group), WEIR_OK);
  EXPECT_STREQ(weir_group_algorithm(group), "alone");
  EXPECT_STREQ(weir_group_address(group), "");
  weir_group* second = group;
  EXPECT_EQ(weir_forming_take(forming, &second), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(second, nullptr);
  EXPECT_EQ(weir_forming_abort(forming), WEIR_OK);
  EXPECT_EQ(weir_forming_test(forming), WEIR_OK) << "the group was taken";
  weir_forming_release(forming);
  EXPECT_EQ(weir_barrier(group), WEIR_OK);
  weir_group_close(group);
}

TEST_F(CApi, TellsAtOnceWhatOfAFormingIsWrong) {
  weir_forming* forming = nullptr;
  EXPECT_EQ(weir_start_group_form(context_, &options_, &forming), WEIR_TRANSPORT_FAILURE);
  EXPECT_THAT(weir_last_error(), HasSubstr("no-such-device"));
  options_.window = 0;
  EXPECT_EQ(weir_start_group_form(context_, &options_, &forming), WEIR_INVALID_ARGUMENT);
  EXPECT_THAT(weir_last_error(), StartsWith("window: found 0"));
  EXPECT_EQ(weir_start_group_form(nullptr, &options_, &forming), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_start_group_form(context_, &options_, nullptr), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(forming, nullptr);
}

TEST_F(CApi, NoFormingIsFormed) {
  weir_group* group = nullptr;
  EXPECT_EQ(weir_forming_test(nullptr), WEIR_INVALID_ARGUMENT);
  EXPECT_THAT(weir_last_error(), StartsWith("forming: found NULL"));
  EXPECT_EQ(weir_forming_wait_for(nullptr, 0), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_forming_take(nullptr, &group), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_forming_abort(nullptr), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_forming_abort_because(nullptr, "why"), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_forming_descriptor(nullptr), -1);
  weir_forming_release(nullptr);
}

TEST_F(CApi, ListensBeforeThereIsAGroup) {
  std::vector<std::uint8_t> handle(WEIR_HANDLE_BYTES + 1, 0xee);
  weir_listener* listener = nullptr;
  ASSERT_EQ(weir_listen(context_, "127.0.0.1:0", &listener, handle.data()), WEIR_OK)
      << weir_last_error();
  EXPECT_EQ(handle[WEIR_HANDLE_BYTES], 0xee);
  options_.rendezvous = nullptr;
  options_.listener = listener;
  options_.world = 1;
  weir_group* group = nullptr;
  ASSERT_EQ(weir_group_form(context_, &options_, &group), WEIR_OK) << weir_last_error();
  weir_group_close(group);
  options_.world = 2;
  EXPECT_EQ(form(), WEIR_TRANSPORT_FAILURE) << "the device is missing, and no group has the port";
  weir_listener_close(listener);
  weir_listener_close(nullptr);
}

TEST_F(CApi, TellsWhatOfAListenerIsWrong) {
  std::vector<std::uint8_t> handle(WEIR_HANDLE_BYTES);
  weir_listener* listener = nullptr;
  EXPECT_EQ(weir_listen(context_, "127.0.0.1", &listener, handle.data()), WEIR_INVALID_ARGUMENT);
  EXPECT_STREQ(weir_last_error(), "address: found '127.0.0.1'; allowed: NULL, or HOST:PORT");
  EXPECT_EQ(weir_listen(context_, "203.0.113.7:0", &listener, handle.data()),
            WEIR_TRANSPORT_FAILURE); // of documentation (RFC 5737), so not this host's
  EXPECT_THAT(weir_last_error(), HasSubstr("cannot listen at 203.0.113.7:0"));
  EXPECT_EQ(weir_listen(nullptr, nullptr, &listener, handle.data()), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_listen(context_, nullptr, nullptr, handle.data()), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_listen(context_, nullptr, &listener, nullptr), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(listener, nullptr);
}

TEST_F(CApi, TellsWhatOfAHandleIsWrong) {
  std::vector<std::uint8_t> handle(WEIR_HANDLE_BYTES);
  options_.rendezvous = nullptr;
  options_.rank = 1;
  options_.handle = handle.data();
  EXPECT_EQ(form(), WEIR_INVALID_ARGUMENT);
  EXPECT_STREQ(weir_last_error(), "handle_bytes: found 0; allowed: 128 with a handle, else 0");
  options_.handle_bytes = WEIR_HANDLE_BYTES;
  EXPECT_EQ(form(), WEIR_INVALID_ARGUMENT);
  EXPECT_THAT(weir_last_error(), StartsWith("handle: found bytes that are no handle of Weir"));
  options_.handle = nullptr;
  EXPECT_EQ(form(), WEIR_INVALID_ARGUMENT);
  EXPECT_THAT(weir_last_error(), StartsWith("handle_bytes: found 128"));
}

TEST_F(CApi, ListensInCpp) {
  ContextOptions device;
  device.device = "no-such-device";
  const Context context(device);
  const Listener listener(context, "127.0.0.1:0");
  EXPECT_THAT(std::string(listener.handle().begin(), listener.handle().begin() + 4), "WEIR");
  GroupOptions options;
  options.world = 1;
  options.listener = listener.get();
  EXPECT_EQ(Group(context, options).algorithm(), "alone");
  EXPECT_THROW(Listener(context, "nowhere"), Error);
}

TEST_F(CApi, FormsInCppMeanwhile) {
  ContextOptions device;
  device.device = "no-such-device";
  const Context context(device);
  GroupOptions options;
  options.world = 1;
  options.rendezvous = "127.0.0.1:1";
  Forming forming(context, options);
  EXPECT_TRUE(forming.wait_for(std::chrono::minutes(1)));
  EXPECT_TRUE(forming.test());
  EXPECT_GE(forming.descriptor(), 0);
  EXPECT_EQ(forming.take()->algorithm(), "alone");
  EXPECT_THROW(forming.take(), Error);
  Forming(context, options).abort_because("nobody needs it");
}

TEST_F(CApi, NoGroupIsShrunkOrAborted) {
  weir_group* shrunk = nullptr;
  EXPECT_EQ(weir_group_shrink(nullptr, nullptr, &shrunk), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_group_shrink(nullptr, nullptr, nullptr), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_group_abort_because(nullptr, "why"), WEIR_INVALID_ARGUMENT);
}

TEST_F(CApi, KnowsNoStructWithoutItsSize) {
  for (const std::size_t size : {std::size_t{0}, sizeof(std::size_t) - 1, std::size_t{4097}}) {
    weir_group_statistics statistics{.size = size};
    EXPECT_EQ(weir_group_read_statistics(nullptr, &statistics), WEIR_INVALID_ARGUMENT);
    EXPECT_EQ(weir_last_error(), "statistics.size: found " + std::to_string(size) +
                                     "; allowed: the struct's sizeof, here 48");
    weir_sparse_view view{.size = size};
    EXPECT_EQ(weir_sparse_result_read(nullptr, &view), WEIR_INVALID_ARGUMENT);
    EXPECT_EQ(weir_last_error(), "view.size: found " + std::to_string(size) +
                                     "; allowed: the struct's sizeof, here 56");
  }
  EXPECT_EQ(weir_sparse_result_read(nullptr, nullptr), WEIR_INVALID_ARGUMENT);
  EXPECT_THAT(weir_last_error(), StartsWith("view: found NULL"));
}

/// A caller may look at the result alone.
TEST_F(CApi, NoSparseResultIsMadeWithoutAPlaceForItsRequest) {
  weir_sparse_tensor tensor{.size = sizeof(tensor), .block_elements = 1};
  alignas(8) char anything[8];
  auto* result = reinterpret_cast<weir_sparse_result*>(anything);
  EXPECT_EQ(weir_start_sparse_all_reduce(nullptr, &tensor, WEIR_F32, WEIR_SUM, &result, nullptr),
            WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(result, nullptr);
}

TEST_F(CApi, SaysWhatOfAMemoryIsWrong) {
  struct Row {
    const char* text;
    void* address;
    std::size_t bytes;
  };

  char data[8] = {};
  const std::vector<Row> rows{
      {"bytes: found 0; allowed: 1 .. ", data, 0},
      {"bytes: found 18446744073709551615; allowed: 1 .. ", data, SIZE_MAX},
      {"address: found NULL", nullptr, 8},
  };
  for (const Row& row : rows) {
    weir_memory* memory = nullptr;
    EXPECT_EQ(weir_memory_register(context_, WEIR_MEMORY_HOST, row.address, row.bytes, &memory),
              WEIR_INVALID_ARGUMENT);
    EXPECT_THAT(weir_last_error(), StartsWith(row.text));
    EXPECT_EQ(memory, nullptr);
  }
  weir_memory* memory = nullptr;
  EXPECT_EQ(weir_memory_register(nullptr, WEIR_MEMORY_HOST, data, 8, &memory),
            WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_memory_register(context_, WEIR_MEMORY_HOST, data, 8, nullptr),
            WEIR_INVALID_ARGUMENT);
}

TEST_F(CApi, RegistersMemoryThatOverlapsAndOutlivesTheContext) {
  char data[8] = {};
  weir_memory* whole = nullptr;
  weir_memory* part = nullptr;
  EXPECT_EQ(weir_memory_register(context_, WEIR_MEMORY_HOST, data, 8, &whole), WEIR_OK);
  EXPECT_EQ(weir_memory_register(context_, WEIR_MEMORY_HOST, data + 4, 4, &part), WEIR_OK);
  ASSERT_NE(part, nullptr);
  EXPECT_NE(whole, part);
  weir_context_close(std::exchange(context_, nullptr));
  weir_memory_release(whole);
  weir_memory_release(part);
  weir_memory_release(nullptr);
}

TEST(CApiVerbs, SaysThatTheDeviceOfAMemoryIsMissing) {
  weir_context_options options;
  weir_context_options_init(&options);
  options.transport = WEIR_VERBS;
  options.device = "no-such-nic";
  weir_context* context = nullptr;
  ASSERT_EQ(weir_context_open(&options, &context), WEIR_OK) << weir_last_error();
  char data[8] = {};
  weir_memory* memory = nullptr;
  EXPECT_EQ(weir_memory_register(context, WEIR_MEMORY_HOST, data, 8, &memory),
            WEIR_TRANSPORT_FAILURE);
  EXPECT_THAT(weir_last_error(), HasSubstr("no-such-nic"));
  EXPECT_EQ(memory, nullptr);
  weir_context_close(context);
}

/// A file in memory, in place of a dma-buf: it is mapped alike.
class MemoryFile {
 public:
  explicit MemoryFile(std::size_t bytes) : descriptor_(memfd_create("dma-buf", MFD_CLOEXEC)) {
    EXPECT_EQ(ftruncate(descriptor_, static_cast<off_t>(bytes)), 0);
  }

  ~MemoryFile() { close(descriptor_); }

  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int descriptor() const { return descriptor_; }

  std::vector<float> floats_at(std::size_t offset, std::size_t count) const {
    std::vector<float> found(count, -1);
    const std::size_t bytes = count * sizeof(float);
    EXPECT_EQ(pread(descriptor_, found.data(), bytes, static_cast<off_t>(offset)),
              static_cast<ssize_t>(bytes));
    return found;
  }

 private:
  const int descriptor_;
};

TEST_F(CApi, SaysWhatOfADmabufIsWrong) {
  struct Row {
    const char* text;
    weir_status status;
    weir_dmabuf dmabuf;
  };

  const MemoryFile file(8192);
  const MemoryFile empty(0);
  const std::string path = "/proc/self/fd/" + std::to_string(file.descriptor());
  const int read_only = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const int no_memory = epoll_create1(EPOLL_CLOEXEC);
  constexpr std::size_t kSize = sizeof(weir_dmabuf);
  const std::vector<Row> rows{
      {"dmabuf.size: found 0", WEIR_INVALID_ARGUMENT, {0, file.descriptor(), 0, 8}},
      {"dmabuf.fd: found -1: Bad file descriptor", WEIR_INVALID_ARGUMENT, {kSize, -1, 0, 8}},
      {"dmabuf: found 0 bytes from 0 on, of a descriptor with 8192; allowed: 1 and more, inside",
       WEIR_INVALID_ARGUMENT,
       {kSize, file.descriptor(), 0, 0}},
      {"dmabuf: found 1 bytes from 0 on, of a descriptor with 0",
       WEIR_INVALID_ARGUMENT,
       {kSize, empty.descriptor(), 0, 1}},
      {"dmabuf: found 8193 bytes from 0 on",
       WEIR_INVALID_ARGUMENT,
       {kSize, file.descriptor(), 0, 8193}},
      {"dmabuf: found 5 bytes from 8188 on",
       WEIR_INVALID_ARGUMENT,
       {kSize, file.descriptor(), 8188, 5}},
      {"dmabuf: found 8 bytes from 18446744073709551612 on",
       WEIR_INVALID_ARGUMENT,
       {kSize, file.descriptor(), UINT64_MAX - 3, 8}},
      {"cannot be mapped: Permission denied; allowed: a dma-buf that was exported to be read and "
       "written",
       WEIR_TRANSPORT_FAILURE,
       {kSize, read_only, 0, 8}},
      {"cannot be mapped: No such device", WEIR_TRANSPORT_FAILURE, {kSize, no_memory, 0, 8}},
  };
  for (const Row& row : rows) {
    weir_memory* memory = nullptr;
    EXPECT_EQ(weir_memory_register_dmabuf(context_, &row.dmabuf, &memory), row.status) << row.text;
    EXPECT_THAT(weir_last_error(), HasSubstr(row.text));
    EXPECT_EQ(memory, nullptr);
  }
  close(read_only);
  close(no_memory);
  weir_memory* memory = nullptr;
  EXPECT_EQ(weir_memory_register_dmabuf(context_, nullptr, &memory), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_memory_register_dmabuf(nullptr, &rows[1].dmabuf, &memory), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_memory_register_dmabuf(context_, &rows[1].dmabuf, nullptr), WEIR_INVALID_ARGUMENT);
  char data[8] = {};
  EXPECT_EQ(weir_memory_register(context_, WEIR_MEMORY_DMABUF, data, 8, &memory),
            WEIR_INVALID_ARGUMENT);
  EXPECT_STREQ(weir_last_error(), "kind: found 1; allowed here: WEIR_MEMORY_HOST; "
                                  "weir_memory_register_dmabuf has another");
  EXPECT_EQ(weir_memory_address(nullptr), nullptr);
}

TEST_F(CApi, TellsWhereMemoryBegins) {
  char data[8] = {};
  weir_memory* memory = nullptr;
  ASSERT_EQ(weir_memory_register(context_, WEIR_MEMORY_HOST, data, 8, &memory), WEIR_OK);
  EXPECT_EQ(weir_memory_address(memory), data);
  weir_memory_release(memory);
}

TEST(CApiVerbs, SaysThatTheDeviceOfADmabufIsMissing) {
  ContextOptions options;
  options.transport = WEIR_VERBS;
  options.device = "no-such-nic";
  const Context context(options);
  const MemoryFile file(4096);
  try {
    const Memory memory(context, weir_dmabuf{0, file.descriptor(), 0, 8});
    ADD_FAILURE() << "there is no such device";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), WEIR_TRANSPORT_FAILURE);
    EXPECT_THAT(error.what(), HasSubstr("no-such-nic"));
  }
}

TEST(CppApi, RegistersASpan) {
  weir::ContextOptions options;
  options.device = "no-such-device";
  options.ip = "10.0.0.1";
  const weir::Context context(options);
  std::vector<float> data(10);
  const weir::Memory memory(context, std::span(data));
  EXPECT_THROW(weir::Memory(context, std::span(data).first(0)), weir::Error);
}

/// A group of one rank. Its context's device does not exist, nobody listens at its rendezvous, and
/// its all-gather would fail.
class OneRank : public CApi {
 protected:
  OneRank() {
    options_.world = 1;
    options_.all_gather = no_all_gather;
    EXPECT_EQ(weir_group_form(context_, &options_, &group_), WEIR_OK) << weir_last_error();
  }

  ~OneRank() override { weir_group_close(group_); }

  /// Of floats, out of place.
  std::vector<float> reduced(const std::vector<float>& in, weir_operation operation) {
    std::vector<float> out(in.size(), -1);
    EXPECT_EQ(weir_all_reduce(group_, in.data(), out.data(), in.size(), WEIR_F32, operation),
              WEIR_OK)
        << weir_last_error();
    return out;
  }

  weir_group* group_ = nullptr;
};

TEST_F(OneRank, SaysWhatItIs) {
  EXPECT_EQ(weir_group_rank(group_), 0);
  EXPECT_EQ(weir_group_world(group_), 1);
  EXPECT_GT(weir_group_epoch(group_), 1'000'000'000U) << "wall-clock seconds";
  EXPECT_STREQ(weir_group_algorithm(group_), "alone");
  EXPECT_STREQ(weir_group_fallback_reason(group_), "");
  EXPECT_STREQ(weir_group_missing_rings(group_), "");
  EXPECT_EQ(weir_group_rings(group_, nullptr, 0), 0) << "nothing travels";
  EXPECT_EQ(weir_group_parent_rank(group_, 0), 0);
  EXPECT_EQ(weir_group_parent_rank(group_, 1), -1);
  EXPECT_EQ(weir_group_leader(group_, 0), 0);
  EXPECT_EQ(weir_group_leader(group_, 1), -1);
  weir_group_statistics statistics{.size = sizeof(statistics)};
  EXPECT_EQ(weir_group_read_statistics(group_, &statistics), WEIR_OK);
  EXPECT_EQ(statistics.messages_sent, 0);
  EXPECT_EQ(statistics.results_received, 0);
}

TEST_F(OneRank, WithoutAThreadDoesTheSameAndHasNoDescriptor) {
  weir_group_close(std::exchange(group_, nullptr));
  options_.progress = WEIR_PROGRESS_CALLER;
  ASSERT_EQ(weir_group_form(context_, &options_, &group_), WEIR_OK) << weir_last_error();
  EXPECT_EQ(reduced({1.5F, 2}, WEIR_SUM), (std::vector<float>{1.5F, 2}));
  EXPECT_EQ(weir_group_progress(group_), WEIR_OK);
  EXPECT_EQ(weir_group_descriptor(group_), -1);
  EXPECT_THAT(weir_last_error(), StartsWith("progress: found a group without a thread"));
  EXPECT_EQ(weir_group_abort(group_), WEIR_OK);
  EXPECT_EQ(weir_group_progress(group_), WEIR_ABORTED);
}

/// What a callback was called with.
/// The group's own thread may be at work when the call starts, and do it a moment later.
void finish(weir_request* request) {
  EXPECT_TRUE(test::comes_true([&] { return weir_test(request) == WEIR_OK; }));
}

struct Told {
  int times = 0;
  weir_status status = WEIR_PENDING;
  std::string error;
  std::function<void()> then = [] {};
};

void tell(void* argument, weir_status status) {
  Told& told = *static_cast<Told*>(argument);
  ++told.times;
  told.status = status;
  told.error = status == WEIR_OK ? "" : weir_last_error();
  told.then();
}

TEST_F(OneRank, CallsBackWhenARequestIsDone) {
  weir_request* request = nullptr;
  ASSERT_EQ(weir_start_barrier(group_, &request), WEIR_OK);
  finish(request);
  EXPECT_EQ(weir_on_done(request, nullptr, nullptr), WEIR_INVALID_ARGUMENT);
  EXPECT_THAT(weir_last_error(), StartsWith("function: found NULL"));
  Told told;
  told.then = [&] { EXPECT_EQ(weir_wait(request), WEIR_OK) << "it is done"; };
  EXPECT_EQ(weir_on_done(request, tell, &told), WEIR_OK);
  EXPECT_EQ(told.times, 1);
  EXPECT_EQ(told.status, WEIR_OK);
}

TEST_F(OneRank, TellsTheCallbackTheError) {
  weir_request* request = nullptr;
  std::vector<float> data(4, 1);
  ASSERT_EQ(weir_start_barrier(group_, &request), WEIR_OK);
  finish(request);
  Told done;
  EXPECT_EQ(weir_group_abort_because(group_, "enough"), WEIR_OK);
  EXPECT_EQ(weir_on_done(request, tell, &done), WEIR_OK);
  EXPECT_EQ(done.status, WEIR_OK) << "it was done before";
  EXPECT_EQ(weir_on_done(request, tell, &done), WEIR_INVALID_ARGUMENT);
  EXPECT_THAT(weir_last_error(), StartsWith("request: found one with a callback"));
  EXPECT_EQ(done.times, 1);
  weir_release(request);
}

TEST_F(OneRank, CancelsNothingThatIsDone) {
  weir_request* request = nullptr;
  ASSERT_EQ(weir_start_barrier(group_, &request), WEIR_OK);
  finish(request);
  EXPECT_EQ(weir_cancel(request), WEIR_OK);
  EXPECT_EQ(weir_test(request), WEIR_OK) << "as it was";
  weir_release(request);
  ASSERT_EQ(weir_start_barrier(group_, &request), WEIR_OK);
  EXPECT_TRUE(Request(request).cancel());
}

/// What weir_start_... refuses, too late for who prepares.
TEST_F(OneRank, SaysWhatOfAPersistentCallIsWrong) {
  float value = 1;
  weir_persistent* persistent = nullptr;
  const auto expect_refusal = [&](weir_status status, const char* text) {
    EXPECT_EQ(status, WEIR_INVALID_ARGUMENT);
    EXPECT_THAT(weir_last_error(), HasSubstr(text));
    EXPECT_EQ(persistent, nullptr);
  };
  expect_refusal(weir_prepare_barrier(nullptr, &persistent), "group: found NULL");
  expect_refusal(weir_prepare_barrier(group_, nullptr), "persistent: found NULL");
  expect_refusal(
      weir_prepare_all_reduce(group_, &value, &value, 1, WEIR_F32, WEIR_AND, &persistent),
      "and of f32 has no meaning");
  expect_refusal(weir_prepare_broadcast(group_, &value, 1, WEIR_F32, 1, &persistent),
                 "root: found 1; allowed: 0 .. 0");
  expect_refusal(
      weir_prepare_all_gather_strided(group_, &value, &value, 2, 1, WEIR_F32, &persistent),
      "stride: found 1");
  expect_refusal(
      weir_prepare_all_reduce_coalesced(group_, nullptr, 1, WEIR_F32, WEIR_SUM, &persistent),
      "tensors: found NULL");
  expect_refusal(weir_prepare_all_reduce(group_, &value, &value, 8, WEIR_AS_OPERATOR,
                                         WEIR_OPERATOR(0), &persistent),
                 "operation: found WEIR_OPERATOR(0)");
  expect_refusal(
      weir_prepare_all_reduce(group_, &value, &value, 8, WEIR_AS_OPERATOR, WEIR_SUM, &persistent),
      "operation: found 0 of WEIR_AS_OPERATOR");
  weir_request* request = nullptr;
  expect_refusal(weir_start_persistent(nullptr, &request), "persistent: found NULL");
  expect_refusal(weir_persistent_register(nullptr), "persistent: found NULL");
  weir_persistent_release(nullptr);
}

TEST_F(OneRank, MultipliesInEachStartOfAPersistentCall) {
  const float factor = 3;
  weir_operation scaled{};
  ASSERT_EQ(weir_make_scaled_sum(group_, WEIR_F32, &factor, &scaled), WEIR_OK);
  std::vector<float> data{1, 2};
  weir_persistent* persistent = nullptr;
  ASSERT_EQ(
      weir_prepare_all_reduce(group_, data.data(), data.data(), 2, WEIR_F32, scaled, &persistent),
      WEIR_OK)
      << weir_last_error();
  Persistent call(persistent);
  call.register_buffers();
  call.start().wait();
  call.start().wait();
  EXPECT_EQ(data, (std::vector<float>{9, 18}));
}

/// Its calls go on by copies.
TEST(CApiVerbs, SaysThatAPersistentCallsMemoryIsNotRegistered) {
  ContextOptions device;
  device.transport = WEIR_VERBS;
  device.device = "no-such-nic";
  const Context context(device);
  GroupOptions options;
  options.world = 1;
  options.rendezvous = "127.0.0.1:1";
  Group group(context, options);
  std::vector<float> data{1, 2};
  Persistent call =
      group.prepare_all_reduce(data.data(), data.data(), data.size(), WEIR_F32, WEIR_SUM);
  try {
    call.register_buffers();
    ADD_FAILURE() << "there is no such device";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("no-such-nic"));
  }
  EXPECT_NO_THROW(call.start().wait());
}

TEST_F(OneRank, RefusesToWaitInACallback) {
  weir_request* request = nullptr;
  ASSERT_EQ(weir_start_barrier(group_, &request), WEIR_OK);
  finish(request);
  Told told;
  told.then = [&] {
    EXPECT_EQ(weir_barrier(group_), WEIR_INVALID_ARGUMENT);
    EXPECT_STREQ(weir_last_error(),
                 "a call that waits: found within a callback; allowed there: calls that do not "
                 "wait");
    weir_group* shrunk = nullptr;
    EXPECT_EQ(weir_group_shrink(group_, nullptr, &shrunk), WEIR_INVALID_ARGUMENT);
    EXPECT_EQ(weir_group_form(context_, &options_, &shrunk), WEIR_INVALID_ARGUMENT);
    weir_group_close(group_); // does nothing
    EXPECT_THAT(weir_last_error(), StartsWith("weir_group_close: found within a callback"));
    weir_request* next = nullptr;
    EXPECT_EQ(weir_start_barrier(group_, &next), WEIR_OK);
    EXPECT_EQ(weir_test(next), WEIR_OK);
    weir_release(next);
  };
  EXPECT_EQ(weir_on_done(request, tell, &told), WEIR_OK);
  EXPECT_EQ(told.times, 1);
  weir_release(request);
  EXPECT_EQ(weir_barrier(group_), WEIR_OK) << "it goes on";
}

bool is_readable(int descriptor) {
  pollfd entry{descriptor, POLLIN, 0};
  return poll(&entry, 1, 0) == 1;
}

TEST_F(OneRank, OneDescriptorTellsOfAllGroupsOfAContext) {
  const int descriptor = weir_context_descriptor(context_);
  ASSERT_GE(descriptor, 0) << weir_last_error();
  EXPECT_EQ(weir_context_descriptor(context_), descriptor);
  EXPECT_FALSE(is_readable(descriptor));
  weir_group* later = nullptr;
  ASSERT_EQ(weir_group_form(context_, &options_, &later), WEIR_OK) << weir_last_error();
  options_.progress = WEIR_PROGRESS_CALLER; // has no descriptor
  weir_group* without = nullptr;
  ASSERT_EQ(weir_group_form(context_, &options_, &without), WEIR_OK) << weir_last_error();
  for (weir_group* const group : {group_, later}) {
    weir_request* request = nullptr;
    ASSERT_EQ(weir_start_barrier(group, &request), WEIR_OK);
    EXPECT_TRUE(test::comes_true([&] { return is_readable(descriptor); }));
    EXPECT_EQ(weir_test(request), WEIR_OK);
    EXPECT_FALSE(is_readable(descriptor));
    weir_release(request);
  }
  EXPECT_EQ(weir_group_abort(later), WEIR_OK);
  EXPECT_EQ(weir_barrier(later), WEIR_ABORTED);
  EXPECT_TRUE(is_readable(descriptor)) << "a group is over";
  weir_group_close(without);
  weir_group_close(later);
  EXPECT_FALSE(is_readable(descriptor)) << "until it is closed";
}

TEST(CppApi, CallsAFunctionObjectBack) {
  ContextOptions device;
  device.device = "no-such-device";
  device.ip = "10.0.0.1";
  Context context(device);
  EXPECT_GE(context.descriptor(), 0);
  GroupOptions options;
  options.world = 1;
  options.rendezvous = "127.0.0.1:1";
  Group group(context, options);
  Request request = group.start_barrier();
  std::atomic<weir_status> told = WEIR_PENDING;
  request.on_done([&told, alive = std::make_unique<int>(1)](weir_status status) { told = status; });
  EXPECT_TRUE(test::comes_true([&] { return told == WEIR_OK; })) << "perhaps by the group's thread";
  EXPECT_THROW(request.on_done([](weir_status) {}), Error);
}

TEST_F(OneRank, ReducesItsOwnElementsAlone) {
  const std::vector<float> in{1.5F, -0.0F, 3e38F, -7};
  for (const weir_operation operation :
       {WEIR_SUM, WEIR_MIN, WEIR_MAX, WEIR_PRODUCT, WEIR_AVERAGE}) {
    const std::vector<float> out = reduced(in, operation);
    EXPECT_EQ(out, in) << operation;
    EXPECT_TRUE(std::signbit(out[1])) << "-0 stays";
  }
  std::vector<std::uint32_t> bits{0xf0, 1};
  for (const weir_operation operation : {WEIR_AND, WEIR_OR, WEIR_XOR, WEIR_AVERAGE}) {
    EXPECT_EQ(weir_all_reduce(group_, bits.data(), bits.data(), 2, WEIR_U32, operation), WEIR_OK);
    EXPECT_EQ(bits, (std::vector<std::uint32_t>{0xf0, 1})) << operation;
  }
}

/// docs/protocol.md §2: NaNs of a reduction are canonical, those of a copy stay as they are.
/// From a byte on that begins no page; whoever has the descriptor sees the result.
TEST_F(OneRank, ReducesInADmabuf) {
  constexpr std::size_t kOffset = 4096 + 40;
  const MemoryFile file(12'288);
  const int copy = dup(file.descriptor());
  const weir_dmabuf dmabuf{sizeof(dmabuf), copy, kOffset, 4096};
  weir_memory* memory = nullptr;
  ASSERT_EQ(weir_memory_register_dmabuf(context_, &dmabuf, &memory), WEIR_OK) << weir_last_error();
  close(copy);
  auto* const floats = static_cast<float*>(weir_memory_address(memory));
  const std::vector<float> in{1.5F, 2, 3};
  ASSERT_EQ(weir_all_reduce(group_, in.data(), floats, 3, WEIR_F32, WEIR_SUM), WEIR_OK);
  EXPECT_EQ(file.floats_at(kOffset, 4), (std::vector<float>{1.5F, 2, 3, 0}));
  EXPECT_EQ(file.floats_at(kOffset - 4, 1), std::vector<float>{0});
  std::vector<float> out(3);
  ASSERT_EQ(weir_all_reduce(group_, floats, out.data(), 3, WEIR_F32, WEIR_SUM), WEIR_OK);
  EXPECT_EQ(out, in);
  auto* const page = reinterpret_cast<char*>(floats) - kOffset % 4096;
  EXPECT_EQ(msync(page, 4096, MS_ASYNC), 0) << "it is mapped";
  weir_memory_release(memory);
  EXPECT_NE(msync(page, 4096, MS_ASYNC), 0) << "nothing is left of it";
}

TEST_F(OneRank, HasTheBitsOfTheProtocol) {
  std::vector<std::uint16_t> halves{0xfe01, 0x0001, 0x3c00}; // f16: NaN, the least subnormal, 1
  const std::vector<std::uint16_t> before = halves;
  EXPECT_EQ(weir_broadcast(group_, halves.data(), halves.size(), WEIR_F16, 0), WEIR_OK);
  EXPECT_EQ(halves, before);
  EXPECT_EQ(
      weir_all_reduce(group_, halves.data(), halves.data(), halves.size(), WEIR_F16, WEIR_SUM),
      WEIR_OK);
  EXPECT_EQ(halves, (std::vector<std::uint16_t>{0x7e00, 0x0001, 0x3c00}));
}

TEST_F(OneRank, MultipliesByItsFactorFirst) {
  const float factor = 0.25;
  weir_operation scaled{};
  ASSERT_EQ(weir_make_scaled_sum(group_, WEIR_F32, &factor, &scaled), WEIR_OK);
  EXPECT_EQ(reduced({1, -8, 3}, scaled), (std::vector<float>{0.25, -2, 0.75}));
}

TEST_F(OneRank, CopiesInAllOtherCalls) {
  const std::vector<std::int32_t> in{1, 2, 3};
  const auto expect_copy = [&](const char* text, auto call) {
    std::vector<std::int32_t> out(3, -1);
    EXPECT_EQ(call(in.data(), out.data()), WEIR_OK) << text << ": " << weir_last_error();
    EXPECT_EQ(out, in) << text;
    EXPECT_EQ(call(out.data(), out.data()), WEIR_OK) << text << ", in place";
    EXPECT_EQ(out, in) << text << ", in place";
  };
  expect_copy("reduce", [&](const void* from, void* to) {
    return weir_reduce(group_, from, to, 3, WEIR_I32, WEIR_SUM, 0);
  });
  expect_copy("all-gather", [&](const void* from, void* to) {
    return weir_all_gather(group_, from, to, 3, WEIR_I32);
  });
  expect_copy("reduce-scatter", [&](const void* from, void* to) {
    return weir_reduce_scatter(group_, from, to, 3, WEIR_I32, WEIR_AVERAGE);
  });
  expect_copy("coalesced", [&](const void* from, void* to) {
    const weir_tensor tensor{from, to, 3};
    return weir_all_reduce_coalesced(group_, &tensor, 1, WEIR_I32, WEIR_MAX);
  });
  EXPECT_EQ(weir_barrier(group_), WEIR_OK);
}

TEST_F(OneRank, FoldsEqualIndicesOfASparseTensor) {
  const std::vector<std::int64_t> indices{7, 2, 7};
  const std::vector<float> values{1, 2, 4};
  const weir_sparse_tensor tensor{.size = sizeof(tensor),
                                  .count = 1000,
                                  .indices = indices.data(),
                                  .values = values.data(),
                                  .index_count = 3,
                                  .block_elements = 1};
  weir_sparse_result* result = nullptr;
  ASSERT_EQ(weir_sparse_all_reduce(group_, &tensor, WEIR_F32, WEIR_AVERAGE, &result), WEIR_OK)
      << weir_last_error();
  weir_sparse_view view{.size = sizeof(view)};
  ASSERT_EQ(weir_sparse_result_read(result, &view), WEIR_OK);
  const auto* found = static_cast<const float*>(view.values);
  EXPECT_EQ(std::vector(view.indices, view.indices + view.index_count),
            (std::vector<std::int64_t>{2, 7}));
  EXPECT_EQ(std::vector(found, found + view.index_count), (std::vector<float>{2, 5}));
  weir_sparse_result_free(result);
}

TEST_F(OneRank, RefusesWhatLargerGroupsRefuse) {
  float value = 1;
  EXPECT_EQ(weir_all_reduce(group_, &value, &value, 1, WEIR_F32, WEIR_XOR), WEIR_INVALID_ARGUMENT);
  EXPECT_STREQ(weir_last_error(), "xor of f32 has no meaning");
  EXPECT_EQ(weir_broadcast(group_, &value, 1, WEIR_F32, 1), WEIR_INVALID_ARGUMENT);
  EXPECT_STREQ(weir_last_error(), "root: found 1; allowed: 0 .. 0");
  EXPECT_EQ(weir_reduce(group_, &value, &value, SIZE_MAX, WEIR_F32, WEIR_SUM, 0),
            WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_barrier(group_), WEIR_OK) << "it goes on";
}

TEST_F(OneRank, IsOverWhenItIsAbortedAndMayBeShrunk) {
  EXPECT_EQ(weir_group_abort_because(group_, "enough"), WEIR_OK);
  EXPECT_EQ(weir_barrier(group_), WEIR_ABORTED);
  EXPECT_STREQ(weir_last_error(), "rank 0 aborted its group: enough");
  weir_group* next = nullptr;
  ASSERT_EQ(weir_group_shrink(group_, nullptr, &next), WEIR_OK) << weir_last_error();
  EXPECT_EQ(weir_group_world(next), 1);
  EXPECT_GT(weir_group_epoch(next), weir_group_epoch(group_));
  EXPECT_EQ(weir_barrier(next), WEIR_OK);
  weir_group_close(next);
}

TEST_F(CApi, SaysWhichOptionIsWrongWhatWasFoundAndWhatIsAllowed) {
  struct Row {
    const char* text;
    std::function<void(weir_group_options&)> spoil;
  };

  const std::string long_name(65, 'x');
  const std::vector<Row> rows{
      {"rank: found 2; allowed: 0 .. 1", [](auto& o) { o.rank = 2; }},
      {"world: found 0; allowed: 1 .. 256", [](auto& o) { o.world = 0; }},
      {"world: found 257; allowed: 1 .. 256", [](auto& o) { o.world = 257; }},
      {"rank: found 1; allowed: 0 .. 0", [](auto& o) { o.world = 1, o.rank = 1; }},
      {"rendezvous: found ''; allowed: HOST:PORT", [](auto& o) { o.rendezvous = nullptr; }},
      {"rendezvous: found '127.0.0.1:0'; allowed: a port that is not 0",
       [](auto& o) { o.rendezvous = "127.0.0.1:0"; }},
      {"window: found 0; allowed: 1 .. 1024", [](auto& o) { o.window = 0; }},
      {"path_mtu: found 1500; allowed: one of", [](auto& o) { o.path_mtu = 1500; }},
      {"message_bytes: found 40; allowed: 48 ..", [](auto& o) { o.message_bytes = 40; }},
      {"form_timeout: found 0 ms; allowed", [](auto& o) { o.form_timeout_ms = 0; }},
      {"timeout: found 0 ms; allowed", [](auto& o) { o.timeout_ms = 0; }},
      {"retry_count: found 8; allowed: 0 .. 7", [](auto& o) { o.retry_count = 8; }},
      {"job: found 65 bytes; allowed: 0 .. 64 printable",
       [&](auto& o) { o.job = long_name.c_str(); }},
      {"job: found 3 bytes; allowed: 0 .. 64 printable", [](auto& o) { o.job = "a\nb"; }},
      {"secret: found 15 bytes; allowed: none, or 16 .. 1024 bytes",
       [](auto& o) { o.secret = "0123456789abcde", o.secret_bytes = 15; }},
      {"secret_bytes: found 0; allowed: 16 .. 1024, or a secret that is NULL",
       [](auto& o) { o.secret = ""; }},
      {"secret_bytes: found 18446744073709551615; allowed: 16 .. 1024",
       [](auto& o) { o.secret = "", o.secret_bytes = SIZE_MAX; }},
      {"secret: found NULL with secret_bytes 16; allowed: 0 there",
       [](auto& o) { o.secret_bytes = 16; }},
      {"rendezvous: found 'here'; allowed: none, or HOST:PORT",
       [](auto& o) { o.rendezvous = "here", o.all_gather = no_all_gather; }},
      {"keep_alive: found 2999 ms; allowed: 0, or 3000 and more",
       [](auto& o) { o.keep_alive_ms = 2999; }},
      {"fallback: found 3; allowed: WEIR_FALLBACK_NONE, WEIR_FALLBACK_RING",
       [](auto& o) { std::memset(&o.fallback, 3, 1); }},
      {"missing_rings: found 2; allowed: WEIR_MISSING_RINGS_LEAVE_OUT, WEIR_MISSING_RINGS_REFUSE",
       [](auto& o) { std::memset(&o.missing_rings, 2, 1); }},
      {"progress: found 2; allowed: WEIR_PROGRESS_THREAD, WEIR_PROGRESS_CALLER",
       [](auto& o) { std::memset(&o.progress, 2, 1); }},
  };
  const weir_group_options sound = options_;
  for (const Row& row : rows) {
    options_ = sound;
    row.spoil(options_);
    EXPECT_EQ(form(), WEIR_INVALID_ARGUMENT) << row.text;
    EXPECT_THAT(weir_last_error(), StartsWith(row.text));
    EXPECT_EQ(weir_last_error_rank(), -1);
  }
}

TEST_F(CApi, SaysWhatIsWrongWithADevice) {
  weir_context_options options = software();
  options.ip = "10.0.0";
  weir_context* context = context_;
  EXPECT_EQ(weir_context_open(&options, &context), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(context, nullptr);
  EXPECT_THAT(weir_last_error(), StartsWith("ip: found '10.0.0'; allowed"));
  EXPECT_EQ(form(), WEIR_TRANSPORT_FAILURE) << "the device is opened by the group";
  EXPECT_THAT(weir_last_error(), HasSubstr("no-such-device"));
}

TEST_F(CApi, AnOldCallersShorterStructGetsTheDefaults) {
  // Of a header that ended with `rendezvous`.
  options_.size = offsetof(weir_group_options, rings);
  options_.window = 0; // behind the old struct's end: not looked at
  EXPECT_EQ(form(), WEIR_TRANSPORT_FAILURE) << weir_last_error();
}

TEST_F(CApi, ACallerOfTheFirstEditionHasNoSecret) {
  options_.size = offsetof(weir_group_options, job);
  options_.job = reinterpret_cast<const char*>(1); // behind the old struct's end
  options_.secret_bytes = 5;
  EXPECT_EQ(form(), WEIR_TRANSPORT_FAILURE) << weir_last_error();
  EXPECT_EQ(options_.size % alignof(weir_group_options), 0) << "its padding would be read";
}

TEST_F(CApi, InitWritesNoByteBehindAnOldCallersStruct) {
  weir_group_options old;
  std::memset(&old, 0xa5, sizeof(old));
  const std::size_t size = offsetof(weir_group_options, window);
  weir_group_options_init_sized(&old, size);
  EXPECT_EQ(old.size, size);
  EXPECT_EQ(old.world, 2);
  EXPECT_EQ(old.window, 0xa5a5a5a5);
}

/// The options of a header that has one field more.
struct Newer {
  weir_group_options options;
  std::uint64_t field;
};

TEST_F(CApi, ANewCallersFieldsMustBeZeroInAnOldLibrary) {
  Newer newer;
  std::memset(&newer, 0xa5, sizeof(newer));
  weir_group_options_init_sized(&newer.options, sizeof(newer));
  EXPECT_EQ(newer.field, 0);
  newer.options.rendezvous = options_.rendezvous;
  weir_group* group = nullptr;
  EXPECT_EQ(weir_group_form(context_, &newer.options, &group), WEIR_TRANSPORT_FAILURE);
  newer.field = 1;
  EXPECT_EQ(weir_group_form(context_, &newer.options, &group), WEIR_INVALID_ARGUMENT);
  EXPECT_THAT(weir_last_error(), HasSubstr(std::string("version ") + weir_version()));
}

TEST_F(CApi, OptionsWithoutASizeAreRefused) {
  options_.size = 0;
  EXPECT_EQ(form(), WEIR_INVALID_ARGUMENT);
  EXPECT_THAT(weir_last_error(), StartsWith("options.size: found 0; allowed"));
}

TEST_F(CApi, NullIsAnErrorAndNotACrash) {
  weir_context* context = nullptr;
  weir_group* group = nullptr;
  weir_request* request = nullptr;
  float value = 0;
  const weir_context_options device = software();
  EXPECT_EQ(weir_context_open(nullptr, &context), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_context_open(&device, nullptr), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_group_form(nullptr, &options_, &group), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_group_form(context_, nullptr, &group), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_group_form(context_, &options_, nullptr), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_all_reduce(nullptr, &value, &value, 1, WEIR_F32, WEIR_SUM), WEIR_INVALID_ARGUMENT);
  EXPECT_THAT(weir_last_error(), StartsWith("group: found NULL"));
  EXPECT_EQ(weir_start_all_reduce(nullptr, &value, &value, 1, WEIR_F32, WEIR_SUM, &request),
            WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_all_reduce_coalesced(nullptr, nullptr, 1, WEIR_F32, WEIR_SUM),
            WEIR_INVALID_ARGUMENT);
  EXPECT_THAT(weir_last_error(), StartsWith("tensors: found NULL"));
  EXPECT_EQ(weir_all_reduce_coalesced(nullptr, nullptr, 0, WEIR_F32, WEIR_SUM),
            WEIR_INVALID_ARGUMENT);
  EXPECT_THAT(weir_last_error(), StartsWith("group: found NULL"));
  weir_operation scaled{};
  EXPECT_EQ(weir_make_scaled_sum(nullptr, WEIR_F32, &value, &scaled), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_make_scaled_sum(nullptr, WEIR_F32, nullptr, &scaled), WEIR_INVALID_ARGUMENT);
  EXPECT_THAT(weir_last_error(), StartsWith("factor: found NULL"));
  EXPECT_EQ(weir_make_scaled_sum(nullptr, WEIR_F32, &value, nullptr), WEIR_INVALID_ARGUMENT);
  EXPECT_THAT(weir_last_error(), StartsWith("operation: found NULL"));
  EXPECT_EQ(weir_drop_operation(nullptr, WEIR_SUM), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_group_descriptor(nullptr), -1);
  EXPECT_THAT(weir_last_error(), StartsWith("group: found NULL"));
  EXPECT_EQ(weir_context_descriptor(nullptr), -1);
  EXPECT_THAT(weir_last_error(), StartsWith("context: found NULL"));
  EXPECT_EQ(weir_on_done(
                nullptr, [](void*, weir_status) {}, nullptr),
            WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_test(nullptr), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_wait(nullptr), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_wait_for(nullptr, 1), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_cancel(nullptr), WEIR_INVALID_ARGUMENT);
  weir_group_statistics statistics{};
  EXPECT_EQ(weir_group_read_statistics(nullptr, &statistics), WEIR_INVALID_ARGUMENT);
  EXPECT_THAT(weir_last_error(), StartsWith("statistics.size: found 0"));
  EXPECT_EQ(weir_group_abort(nullptr), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_group_progress(nullptr), WEIR_INVALID_ARGUMENT);
  weir_sparse_tensor tensor{};
  tensor.size = sizeof(tensor);
  weir_sparse_result* result = nullptr;
  EXPECT_EQ(weir_sparse_all_reduce(nullptr, &tensor, WEIR_F32, WEIR_SUM, &result),
            WEIR_INVALID_ARGUMENT);
  EXPECT_THAT(weir_last_error(), StartsWith("group: found NULL"));
  EXPECT_EQ(weir_sparse_all_reduce(nullptr, nullptr, WEIR_F32, WEIR_SUM, &result),
            WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_sparse_all_reduce(nullptr, &tensor, WEIR_F32, WEIR_SUM, nullptr),
            WEIR_INVALID_ARGUMENT);
  EXPECT_THAT(weir_last_error(), StartsWith("result: found NULL"));
  weir_sparse_view view{};
  EXPECT_EQ(weir_sparse_result_read(result, &view), WEIR_INVALID_ARGUMENT);
  EXPECT_THAT(weir_last_error(), StartsWith("view.size: found 0"));
  view.size = sizeof(view);
  EXPECT_EQ(weir_sparse_result_read(result, &view), WEIR_INVALID_ARGUMENT);
  EXPECT_THAT(weir_last_error(), StartsWith("result: found NULL"));
  EXPECT_EQ(weir_sparse_result_copy(result, nullptr, nullptr, 0), WEIR_INVALID_ARGUMENT);
  weir_region* region = nullptr;
  std::uint16_t rank = 0;
  std::uint32_t immediate = 0;
  EXPECT_EQ(weir_region_form(nullptr, nullptr, 0, nullptr, &region), WEIR_INVALID_ARGUMENT);
  EXPECT_THAT(weir_last_error(), StartsWith("group: found NULL"));
  EXPECT_EQ(weir_region_write(region, 0, nullptr, 0, WEIR_NO_IMMEDIATE, &request),
            WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_region_read(region, 0, 0, nullptr, 0, &request), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_region_notice(region, &rank, &immediate), WEIR_INVALID_ARGUMENT);
  EXPECT_THAT(weir_last_error(), StartsWith("region: found NULL"));
  weir_region_close(nullptr);
  weir_sparse_result_free(nullptr);
  weir_release(nullptr);
  weir_group_close(nullptr);
  weir_context_close(nullptr);
}

TEST(CApiReductions, FloatsHaveNoBitwiseOperation) {
  for (const weir_data_type type : {WEIR_F32, WEIR_F16, WEIR_BF16, WEIR_F64, WEIR_F8E5M2}) {
    for (const weir_operation operation : {WEIR_SUM, WEIR_MIN, WEIR_MAX, WEIR_PRODUCT}) {
      EXPECT_EQ(weir_is_reducible(type, operation), 1) << type << ", " << operation;
    }
    for (const weir_operation operation : {WEIR_AND, WEIR_OR, WEIR_XOR}) {
      EXPECT_EQ(weir_is_reducible(type, operation), 0) << type << ", " << operation;
    }
    EXPECT_EQ(weir_is_reducible(type, WEIR_AVERAGE), 1) << type;
  }
  for (const weir_operation operation :
       {WEIR_SUM, WEIR_PRODUCT, WEIR_AND, WEIR_XOR, WEIR_AVERAGE}) {
    EXPECT_EQ(weir_is_reducible(WEIR_U64, operation), 1) << operation;
  }
}

TEST(CApiReductions, ANumberThatIsNoTypeOrOperationHasNone) {
  EXPECT_EQ(weir_is_reducible(static_cast<weir_data_type>(14), WEIR_SUM), 0);
  EXPECT_EQ(weir_is_reducible(WEIR_I32, static_cast<weir_operation>(7)), 0);
  EXPECT_EQ(weir_is_reducible(WEIR_I32, static_cast<weir_operation>(257)), 0);
}

TEST(CApiNames, EachStatusHasItsOwn) {
  const std::vector<std::string> names{"ok",
                                       "invalid_argument",
                                       "rendezvous_timeout",
                                       "peer_died",
                                       "retry_exceeded",
                                       "not_aggregated",
                                       "mismatch",
                                       "timeout",
                                       "transport_failure",
                                       "pending",
                                       "internal_error",
                                       "aborted",
                                       "operator_failed",
                                       "cancelled"};
  for (std::size_t status = 0; status < names.size(); ++status) {
    EXPECT_EQ(weir_status_name(static_cast<weir_status>(status)), names[status]);
  }
  EXPECT_STREQ(weir_status_name(static_cast<weir_status>(15)), "unknown");
}

TEST(CppApi, KnowsTheTypeOfASpansElements) {
  EXPECT_EQ(data_type_of<float>(), WEIR_F32);
  EXPECT_EQ(data_type_of<double>(), WEIR_F64);
  EXPECT_EQ(data_type_of<std::int8_t>(), WEIR_I8);
  EXPECT_EQ(data_type_of<std::uint16_t>(), WEIR_U16);
  EXPECT_EQ(data_type_of<std::int32_t>(), WEIR_I32);
  EXPECT_EQ(data_type_of<long>(), WEIR_I64);
  EXPECT_EQ(data_type_of<long long>(), WEIR_I64);
  EXPECT_EQ(data_type_of<unsigned long long>(), WEIR_U64);
}

TEST(CppApi, ThrowsWhatTheCApiReturns) {
  ContextOptions device;
  EXPECT_EQ(device.size, sizeof(weir_context_options));
  device.ip = "10.0.0.1.1";
  try {
    const Context context(device);
    FAIL() << "an address of five numbers";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), WEIR_INVALID_ARGUMENT);
    EXPECT_THAT(error.what(), StartsWith("ip: found '10.0.0.1.1'; allowed: none, or"));
    EXPECT_FALSE(error.rank());
  }
  device.device = "no-such-device";
  device.ip = "10.0.0.1";
  const Context context(device);
  GroupOptions options;
  EXPECT_EQ(options.size, sizeof(weir_group_options));
  options.rendezvous = "127.0.0.1:1";
  EXPECT_THROW(Group(context, options), Error);
}

} // namespace
} // namespace weir::c_api_test
