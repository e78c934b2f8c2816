// SPDX-License-Identifier: BSD-3-Clause
#ifndef WEIR_WEIR_HPP
#define WEIR_WEIR_HPP

/// weir/weir.h for C++20: objects that close themselves, errors as exceptions, types from spans.
/// All of it is in this header, over the C ABI.
///
///     weir::ContextOptions device;
///     device.device = "eth1";
///     device.ip = "10.0.0.1";
///     weir::Context context(device);
///     weir::GroupOptions options;
///     options.rank = 0;
///     options.world = 4;
///     options.rendezvous = "10.0.0.1:7471";
///     weir::Group group(context, options);
///     group.all_reduce(std::span(gradients), WEIR_SUM);

#include "weir/weir.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace weir {

/// What went wrong, and the rank concerned if it is one rank.
class Error : public std::runtime_error {
 public:
  /// The error of this thread's last call.
  explicit Error(weir_status status)
      : std::runtime_error(weir_last_error()), status_(status), rank_(weir_last_error_rank()) {}

  weir_status status() const { return status_; }

  std::optional<std::uint16_t> rank() const {
    return rank_ < 0 ? std::nullopt : std::optional(static_cast<std::uint16_t>(rank_));
  }

 private:
  weir_status status_;
  int rank_;
};

/// False for WEIR_PENDING. Throws Error for any other status but WEIR_OK.
inline bool is_done(weir_status status) {
  if (status != WEIR_OK && status != WEIR_PENDING) {
    throw Error(status);
  }
  return status == WEIR_OK;
}

inline int checked_descriptor(int descriptor) {
  if (descriptor < 0) {
    throw Error(WEIR_TRANSPORT_FAILURE);
  }
  return descriptor;
}

/// The element type of spans: float, double, and integers of 1, 2, 4 or 8 bytes. f16, bf16 and f8
/// have no type in C++20: name them in the calls that take pointers.
template <typename Element>
constexpr weir_data_type data_type_of() {
  static_assert(std::is_floating_point_v<Element> || std::is_integral_v<Element>);
  static_assert(sizeof(Element) <= 8 && !std::is_same_v<Element, bool>);
  if constexpr (std::is_floating_point_v<Element>) {
    return sizeof(Element) == 4 ? WEIR_F32 : WEIR_F64;
  } else {
    constexpr std::array<weir_data_type, 4> with_sign{WEIR_I8, WEIR_I16, WEIR_I32, WEIR_I64};
    constexpr std::array<weir_data_type, 4> without{WEIR_U8, WEIR_U16, WEIR_U32, WEIR_U64};
    constexpr std::size_t size = std::bit_width(sizeof(Element)) - 1;
    return std::is_signed_v<Element> ? with_sign[size] : without[size];
  }
}

struct ContextOptions : weir_context_options {
  ContextOptions() : weir_context_options{} { weir_context_options_init(base()); }

 private:
  weir_context_options* base() { return this; }
};

struct GroupOptions : weir_group_options {
  GroupOptions() : weir_group_options{} { weir_group_options_init(base()); }

 private:
  weir_group_options* base() { return this; }
};

/// This host's Ethernet interfaces and RoCE NICs.
inline std::vector<weir_device> devices() {
  std::size_t count = 0;
  is_done(weir_list_devices(nullptr, 0, &count));
  std::vector<weir_device> found(count);
  if (count != 0) {
    found.front().size = sizeof(weir_device);
    is_done(weir_list_devices(found.data(), found.size(), &count));
    found.resize(std::min(count, found.size())); // one may have come or gone meanwhile
  }
  return found;
}

/// A device.
class Context {
 public:
  explicit Context(const weir_context_options& options) {
    weir_context* opened = nullptr;
    is_done(weir_context_open(&options, &opened));
    context_.reset(opened);
  }

  int descriptor() { return checked_descriptor(weir_context_descriptor(get())); }

  weir_context* get() const { return context_.get(); }

 private:
  struct Close {
    void operator()(weir_context* context) const { weir_context_close(context); }
  };

  std::unique_ptr<weir_context, Close> context_;
};

/// Where rank 0 of a group to come listens: `get()` is for its options.
class Listener {
 public:
  /// NULL: on every interface, at a free port.
  explicit Listener(const Context& context, const char* address = nullptr) {
    weir_listener* opened = nullptr;
    is_done(weir_listen(context.get(), address, &opened, handle_.data()));
    listener_.reset(opened);
  }

  /// For the options of the other ranks.
  const std::array<std::uint8_t, WEIR_HANDLE_BYTES>& handle() const { return handle_; }

  weir_listener* get() const { return listener_.get(); }

 private:
  struct Close {
    void operator()(weir_listener* listener) const { weir_listener_close(listener); }
  };

  std::array<std::uint8_t, WEIR_HANDLE_BYTES> handle_{};
  std::unique_ptr<weir_listener, Close> listener_;
};

/// Memory that the context's device reads and writes by itself. The owner keeps it alive until this
/// is destroyed.
class Memory {
 public:
  Memory(const Context& context, weir_memory_kind kind, void* address, std::size_t bytes) {
    weir_memory* registered = nullptr;
    is_done(weir_memory_register(context.get(), kind, address, bytes, &registered));
    memory_.reset(registered);
  }

  template <typename Element, std::size_t kExtent>
  Memory(const Context& context, std::span<Element, kExtent> data)
      : Memory(context, WEIR_MEMORY_HOST, data.data(), data.size_bytes()) {}

  /// `dmabuf.size` need not be set.
  Memory(const Context& context, weir_dmabuf dmabuf) {
    dmabuf.size = sizeof(dmabuf);
    weir_memory* registered = nullptr;
    is_done(weir_memory_register_dmabuf(context.get(), &dmabuf, &registered));
    memory_.reset(registered);
  }

  /// Where it begins.
  void* address() const { return weir_memory_address(memory_.get()); }

 private:
  struct Release {
    void operator()(weir_memory* memory) const { weir_memory_release(memory); }
  };

  std::unique_ptr<weir_memory, Release> memory_;
};

/// An operation under way. Its destructor waits until it is done.
class Request {
 public:
  explicit Request(weir_request* request) : request_(request) {}

  /// Never waits. Throws the Error that ended it; so do the next two.
  bool test() { return is_done(weir_test(request_.get())); }

  bool wait_for(std::chrono::duration<std::uint32_t, std::milli> timeout) {
    return is_done(weir_wait_for(request_.get(), timeout.count()));
  }

  /// Calls function(weir_status), as weir_on_done says. An Error made there of a status that is not
  /// WEIR_OK has its text and rank.
  template <typename Function>
  void on_done(Function function) {
    auto owned = std::make_unique<Function>(std::move(function));
    is_done(weir_on_done(
        request_.get(),
        [](void* argument, weir_status status) {
          const std::unique_ptr<Function> called(static_cast<Function*>(argument));
          (*called)(status);
        },
        owned.get()));
    static_cast<void>(owned.release()); // the callback's
  }

  /// True: it is over; if this call has ended it, test() and wait() throw Error with
  /// WEIR_CANCELLED. False: a part of it has left, and it goes on.
  bool cancel() { return is_done(weir_cancel(request_.get())); }

  /// May be called once, and then nothing else.
  void wait() { is_done(weir_wait(request_.release())); }

 private:
  struct Release {
    void operator()(weir_request* request) const { weir_release(request); }
  };

  std::unique_ptr<weir_request, Release> request_;
};

/// A call that is made again and again, until this is destroyed. weir.h says when that may be.
class Persistent {
 public:
  explicit Persistent(weir_persistent* persistent) : persistent_(persistent) {}

  Request start() {
    weir_request* request = nullptr;
    is_done(weir_start_persistent(persistent_.get(), &request));
    return Request(request);
  }

  /// Makes its buffers known to the device.
  void register_buffers() { is_done(weir_persistent_register(persistent_.get())); }

 private:
  struct Release {
    void operator()(weir_persistent* persistent) const { weir_persistent_release(persistent); }
  };

  std::unique_ptr<weir_persistent, Release> persistent_;
};

/// What a sparse all-reduce makes.
class SparseResult {
 public:
  explicit SparseResult(weir_sparse_result* result) : result_(result) {}

  /// Valid as long as this object. Throws std::logic_error before the request is done,
  /// and the Error that ended its call.
  weir_sparse_view read() const {
    weir_sparse_view view{};
    view.size = sizeof(view);
    if (!is_done(weir_sparse_result_read(result_.get(), &view))) {
      throw std::logic_error("the sparse all-reduce is not done");
    }
    return view;
  }

 private:
  struct Free {
    void operator()(weir_sparse_result* result) const { weir_sparse_result_free(result); }
  };

  std::unique_ptr<weir_sparse_result, Free> result_;
};

/// Ranks that reduce together. weir.h says what each call does.
class Group {
 public:
  Group(const Context& context, const weir_group_options& options) {
    weir_group* formed = nullptr;
    is_done(weir_group_form(context.get(), &options, &formed));
    group_.reset(formed);
  }

  std::uint16_t rank() const { return weir_group_rank(get()); }

  std::uint16_t world() const { return weir_group_world(get()); }

  std::uint32_t epoch() const { return weir_group_epoch(get()); }

  std::string_view address() const { return weir_group_address(get()); }

  std::string_view algorithm() const { return weir_group_algorithm(get()); }

  std::string_view fallback_reason() const { return weir_group_fallback_reason(get()); }

  std::string_view missing_operators() const { return weir_group_missing_operators(get()); }

  /// Ids of those that carry the calls.
  std::vector<std::uint32_t> rings() const {
    std::vector<std::uint32_t> ids(weir_group_rings(get(), nullptr, 0));
    weir_group_rings(get(), ids.data(), ids.size());
    return ids;
  }

  std::string_view missing_rings() const { return weir_group_missing_rings(get()); }

  /// Of the ranks that live. This group is to be destroyed as always.
  Group shrink() { return shrunk_with(nullptr); }

  Group shrink(const weir_group_options& options) { return shrunk_with(&options); }

  /// Of the ranks that give this colour, ordered by their keys. Every rank calls it. None for
  /// WEIR_NO_COLOUR. `options` null: this group's.
  std::optional<Group> split(std::int32_t colour, std::int32_t key = 0,
                             const weir_group_options* options = nullptr) {
    weir_group* part = nullptr;
    is_done(weir_group_split(get(), colour, key, options, &part));
    return part == nullptr ? std::nullopt : std::optional(Group(part));
  }

  /// Of these ranks, in their order. Every rank calls it. None for a rank that is not among them.
  std::optional<Group> select(std::span<const std::uint16_t> ranks,
                              const weir_group_options* options = nullptr) {
    weir_group* part = nullptr;
    is_done(weir_group_select(get(), ranks.data(), ranks.size(), options, &part));
    return part == nullptr ? std::nullopt : std::optional(Group(part));
  }

  /// Of the same ranks. Every rank calls it.
  Group dup(const weir_group_options* options = nullptr) {
    weir_group* copy = nullptr;
    is_done(weir_group_dup(get(), options, &copy));
    return Group(copy);
  }

  /// None: there is no such rank.
  std::optional<std::uint16_t> parent_rank(std::uint16_t rank) const {
    const int parent = weir_group_parent_rank(get(), rank);
    return parent < 0 ? std::nullopt : std::optional(static_cast<std::uint16_t>(parent));
  }

  /// The lowest of the ranks that share that rank's NIC. None: there is no such rank.
  std::optional<std::uint16_t> leader(std::uint16_t rank) const {
    const int leader = weir_group_leader(get(), rank);
    return leader < 0 ? std::nullopt : std::optional(static_cast<std::uint16_t>(leader));
  }

  /// Throws the Error that ended the group.
  void progress() { is_done(weir_group_progress(get())); }

  void abort() { is_done(weir_group_abort(get())); }

  void abort_because(const std::string& why) {
    is_done(weir_group_abort_because(get(), why.c_str()));
  }

  int descriptor() { return checked_descriptor(weir_group_descriptor(get())); }

  weir_group_statistics statistics() const {
    weir_group_statistics counted{};
    counted.size = sizeof(counted);
    is_done(weir_group_read_statistics(get(), &counted));
    return counted;
  }

  void all_reduce(const void* in, void* out, std::size_t count, weir_data_type type,
                  weir_operation operation) {
    is_done(weir_all_reduce(get(), in, out, count, type, operation));
  }

  void all_reduce(std::span<const weir_tensor> tensors, weir_data_type type,
                  weir_operation operation) {
    is_done(weir_all_reduce_coalesced(get(), tensors.data(), tensors.size(), type, operation));
  }

  void reduce(const void* in, void* out, std::size_t count, weir_data_type type,
              weir_operation operation, std::uint16_t root) {
    is_done(weir_reduce(get(), in, out, count, type, operation, root));
  }

  void broadcast(void* data, std::size_t count, weir_data_type type, std::uint16_t root) {
    is_done(weir_broadcast(get(), data, count, type, root));
  }

  void all_gather(const void* in, void* out, std::size_t count, weir_data_type type) {
    is_done(weir_all_gather(get(), in, out, count, type));
  }

  void reduce_scatter(const void* in, void* out, std::size_t count, weir_data_type type,
                      weir_operation operation) {
    is_done(weir_reduce_scatter(get(), in, out, count, type, operation));
  }

  void barrier() { is_done(weir_barrier(get())); }

  /// `tensor.size` need not be set.
  SparseResult sparse_all_reduce(weir_sparse_tensor tensor, weir_data_type type,
                                 weir_operation operation) {
    tensor.size = sizeof(tensor);
    weir_sparse_result* result = nullptr;
    is_done(weir_sparse_all_reduce(get(), &tensor, type, operation, &result));
    return SparseResult(result);
  }

  struct SparseCall {
    SparseResult result;
    Request request; // is released first
  };

  SparseCall start_sparse_all_reduce(weir_sparse_tensor tensor, weir_data_type type,
                                     weir_operation operation) {
    tensor.size = sizeof(tensor);
    weir_sparse_result* result = nullptr;
    weir_request* request = nullptr;
    is_done(weir_start_sparse_all_reduce(get(), &tensor, type, operation, &result, &request));
    return {SparseResult(result), Request(request)};
  }

  Request start_all_reduce(const void* in, void* out, std::size_t count, weir_data_type type,
                           weir_operation operation) {
    return started(weir_start_all_reduce, in, out, count, type, operation);
  }

  Request start_all_reduce(std::span<const weir_tensor> tensors, weir_data_type type,
                           weir_operation operation) {
    return started(weir_start_all_reduce_coalesced, tensors.data(), tensors.size(), type,
                   operation);
  }

  Request start_reduce(const void* in, void* out, std::size_t count, weir_data_type type,
                       weir_operation operation, std::uint16_t root) {
    return started(weir_start_reduce, in, out, count, type, operation, root);
  }

  Request start_broadcast(void* data, std::size_t count, weir_data_type type, std::uint16_t root) {
    return started(weir_start_broadcast, data, count, type, root);
  }

  Request start_all_gather_strided(const void* in, void* out, std::size_t count, std::size_t stride,
                                   weir_data_type type) {
    return started(weir_start_all_gather_strided, in, out, count, stride, type);
  }

  Request start_reduce_scatter_strided(const void* in, void* out, std::size_t count,
                                       std::size_t stride, weir_data_type type,
                                       weir_operation operation) {
    return started(weir_start_reduce_scatter_strided, in, out, count, stride, type, operation);
  }

  Request start_all_gather(const void* in, void* out, std::size_t count, weir_data_type type) {
    return started(weir_start_all_gather, in, out, count, type);
  }

  Request start_reduce_scatter(const void* in, void* out, std::size_t count, weir_data_type type,
                               weir_operation operation) {
    return started(weir_start_reduce_scatter, in, out, count, type, operation);
  }

  Request start_barrier() { return started(weir_start_barrier); }

  Persistent prepare_all_reduce(const void* in, void* out, std::size_t count, weir_data_type type,
                                weir_operation operation) {
    return prepared(weir_prepare_all_reduce, in, out, count, type, operation);
  }

  Persistent prepare_all_reduce(std::span<const weir_tensor> tensors, weir_data_type type,
                                weir_operation operation) {
    return prepared(weir_prepare_all_reduce_coalesced, tensors.data(), tensors.size(), type,
                    operation);
  }

  Persistent prepare_reduce(const void* in, void* out, std::size_t count, weir_data_type type,
                            weir_operation operation, std::uint16_t root) {
    return prepared(weir_prepare_reduce, in, out, count, type, operation, root);
  }

  Persistent prepare_broadcast(void* data, std::size_t count, weir_data_type type,
                               std::uint16_t root) {
    return prepared(weir_prepare_broadcast, data, count, type, root);
  }

  Persistent prepare_all_gather(const void* in, void* out, std::size_t count, weir_data_type type) {
    return prepared(weir_prepare_all_gather, in, out, count, type);
  }

  Persistent prepare_reduce_scatter(const void* in, void* out, std::size_t count,
                                    weir_data_type type, weir_operation operation) {
    return prepared(weir_prepare_reduce_scatter, in, out, count, type, operation);
  }

  Persistent prepare_all_gather_strided(const void* in, void* out, std::size_t count,
                                        std::size_t stride, weir_data_type type) {
    return prepared(weir_prepare_all_gather_strided, in, out, count, stride, type);
  }

  Persistent prepare_reduce_scatter_strided(const void* in, void* out, std::size_t count,
                                            std::size_t stride, weir_data_type type,
                                            weir_operation operation) {
    return prepared(weir_prepare_reduce_scatter_strided, in, out, count, stride, type, operation);
  }

  Persistent prepare_barrier() { return prepared(weir_prepare_barrier); }

  // In place, with the type of the span's elements.

  template <typename Element, std::size_t kExtent>
  void all_reduce(std::span<Element, kExtent> data, weir_operation operation) {
    all_reduce(data.data(), data.data(), data.size(), data_type_of<Element>(), operation);
  }

  template <typename Element, std::size_t kExtent>
  Request start_all_reduce(std::span<Element, kExtent> data, weir_operation operation) {
    return start_all_reduce(data.data(), data.data(), data.size(), data_type_of<Element>(),
                            operation);
  }

  template <typename Element, std::size_t kExtent>
  void broadcast(std::span<Element, kExtent> data, std::uint16_t root) {
    broadcast(data.data(), data.size(), data_type_of<Element>(), root);
  }

  weir_group* get() const { return group_.get(); }

 private:
  friend class Forming;

  struct Close {
    void operator()(weir_group* group) const { weir_group_close(group); }
  };

  explicit Group(weir_group* group) : group_(group) {}

  Group shrunk_with(const weir_group_options* options) {
    weir_group* shrunk = nullptr;
    is_done(weir_group_shrink(get(), options, &shrunk));
    return Group(shrunk);
  }

  template <typename... Parameters, typename... Arguments>
  Persistent prepared(weir_status (*prepare)(weir_group*, Parameters...), Arguments... arguments) {
    weir_persistent* persistent = nullptr;
    is_done(prepare(get(), arguments..., &persistent));
    return Persistent(persistent);
  }

  template <typename... Parameters, typename... Arguments>
  Request started(weir_status (*start)(weir_group*, Parameters...), Arguments... arguments) {
    weir_request* request = nullptr;
    is_done(start(get(), arguments..., &request));
    return Request(request);
  }

  std::unique_ptr<weir_group, Close> group_;
};

struct RegionOptions : weir_region_options {
  RegionOptions() : weir_region_options{} { weir_region_options_init(base()); }

 private:
  weir_region_options* base() { return this; }
};

/// Memory of which each rank of a group has a copy. weir.h says what each call does. To be
/// destroyed before its group, by all ranks.
class Region {
 public:
  struct Notice {
    std::uint16_t rank;
    std::uint32_t immediate;
  };

  template <typename Element, std::size_t kExtent>
  Region(Group& group, std::span<Element, kExtent> memory,
         const weir_region_options& options = RegionOptions()) {
    weir_region* formed = nullptr;
    is_done(weir_region_form(group.get(), memory.data(), memory.size_bytes(), &options, &formed));
    region_.reset(formed);
  }

  /// `offset` in bytes, as of read().
  template <typename Element, std::size_t kExtent>
  Request write(std::size_t offset, std::span<Element, kExtent> data,
                std::uint32_t immediate = WEIR_NO_IMMEDIATE) {
    weir_request* request = nullptr;
    is_done(weir_region_write(get(), offset, data.data(), data.size_bytes(), immediate, &request));
    return Request(request);
  }

  template <typename Element, std::size_t kExtent>
  Request read(std::size_t view, std::size_t offset, std::span<Element, kExtent> out) {
    weir_request* request = nullptr;
    is_done(weir_region_read(get(), view, offset, out.data(), out.size_bytes(), &request));
    return Request(request);
  }

  /// The oldest that was not taken. Never waits.
  std::optional<Notice> notice() {
    Notice next{};
    return is_done(weir_region_notice(get(), &next.rank, &next.immediate)) ? std::optional(next)
                                                                           : std::nullopt;
  }

  weir_region* get() const { return region_.get(); }

 private:
  struct Close {
    void operator()(weir_region* region) const { weir_region_close(region); }
  };

  std::unique_ptr<weir_region, Close> region_;
};

/// A group that is being formed while this thread does other things. Its destructor aborts what is
/// not done, and a group that was not taken.
class Forming {
 public:
  Forming(const Context& context, const weir_group_options& options) {
    weir_forming* started = nullptr;
    is_done(weir_start_group_form(context.get(), &options, &started));
    forming_.reset(started);
  }

  /// True once the group is formed. Never blocks. Throws the Error for which it is not formed; so
  /// do the next two.
  bool test() { return is_done(weir_forming_test(get())); }

  bool wait_for(std::chrono::duration<std::uint32_t, std::milli> timeout) {
    return is_done(weir_forming_wait_for(get(), timeout.count()));
  }

  /// The group, once. None: it is not formed yet.
  std::optional<Group> take() {
    weir_group* formed = nullptr;
    return is_done(weir_forming_take(get(), &formed)) ? std::optional(Group(formed)) : std::nullopt;
  }

  void abort() { is_done(weir_forming_abort(get())); }

  void abort_because(const std::string& why) {
    is_done(weir_forming_abort_because(get(), why.c_str()));
  }

  int descriptor() {
    const int descriptor = weir_forming_descriptor(get());
    if (descriptor < 0) {
      throw Error(WEIR_TRANSPORT_FAILURE);
    }
    return descriptor;
  }

  weir_forming* get() const { return forming_.get(); }

 private:
  struct Release {
    void operator()(weir_forming* forming) const { weir_forming_release(forming); }
  };

  std::unique_ptr<weir_forming, Release> forming_;
};

} // namespace weir

#endif
