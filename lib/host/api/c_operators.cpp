// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/c_errors.hpp"
#include "host/api/c_objects.hpp"
#include "op/float_environment.hpp"
#include "program/digest.hpp"
#include "program/operator.hpp"
#include "program/tensor_layout.hpp"
#include "weir/ina.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

/// Operators of the user's own, as far as they need no network.

using namespace weir;
using namespace weir::host::c;

namespace {

program::TensorLayout layout_of(const weir_operator* op) {
  const weir_operator& given = object_at(op, "op");
  return {given.loaded->program(), given.layout};
}

/// Of a struct with several fields, numbers say nothing of the others.
void expect_numbers(const weir_operator* op) {
  const weir_operator& given = object_at(op, "op");
  const program::Code& code = given.loaded->code();
  if (!code.is_block() && code.fields.size() > 1) {
    throw std::invalid_argument(fmt::format(
        "op: found {}, whose elements are structs of {} fields; allowed: an operator of blocks, or "
        "of one field: lay these out yourself (weir_operator_place)",
        given.loaded->name(), code.fields.size()));
  }
  if (!code.accumulator) {
    throw std::invalid_argument(
        fmt::format("op: found {}, whose start does not give one f32 for each element; allowed: an "
                    "operator of blocks, or one that adds f32",
                    given.loaded->name()));
  }
}

} // namespace

weir_status weir_operator_load(const char* text, size_t bytes, weir_operator** op) {
  return guarded([&] {
    object_at(op, "op") = nullptr;
    const std::string_view given(&object_at(text, "text"), bytes);
    auto loaded = program::Operator::load(given);
    std::string digest = program::to_string(loaded->digest());
    *op = new weir_operator{std::move(loaded), std::move(digest), {}};
    return WEIR_OK;
  });
}

void weir_operator_release(weir_operator* op) {
  delete op;
}

const char* weir_operator_name(const weir_operator* op) {
  return op != nullptr ? op->loaded->name().c_str() : "";
}

const char* weir_operator_digest(const weir_operator* op) {
  return op != nullptr ? op->digest.c_str() : "";
}

weir_status weir_operator_set_layout(weir_operator* op, uint32_t path_mtu, uint32_t message_bytes) {
  return guarded([&] {
    constexpr std::array<uint32_t, 5> mtus{256, 512, 1024, 2048, 4096};
    if (std::ranges::find(mtus, path_mtu) == mtus.end()) {
      throw std::invalid_argument(
          fmt::format("path_mtu: found {}; allowed: {}", path_mtu, fmt::join(mtus, ", ")));
    }
    constexpr uint32_t least = kInaHeaderBytes + 8;
    if (message_bytes < least) {
      throw std::invalid_argument(
          fmt::format("message_bytes: found {}; allowed: {} or more", message_bytes, least));
    }
    weir_operator& given = object_at(op, "op");
    const program::MessageLayout layout{path_mtu, message_bytes};
    if (program::TensorLayout(given.loaded->program(), layout).elements_of_message() == 0) {
      throw std::invalid_argument(fmt::format("path_mtu: found {}, and message_bytes {}; allowed: "
                                              "so many that a block or struct of {}, "
                                              "which has {} bytes, fits into a packet",
                                              path_mtu, message_bytes, given.loaded->name(),
                                              given.loaded->code().unit_bytes));
    }
    given.layout = layout;
    return WEIR_OK;
  });
}

size_t weir_operator_bytes(const weir_operator* op, size_t elements) {
  return op != nullptr ? layout_of(op).bytes_of(elements) : 0;
}

size_t weir_operator_place(const weir_operator* op, size_t element) {
  return op != nullptr ? layout_of(op).place_of(element) : 0;
}

weir_status weir_operator_pack(const weir_operator* op, const float* in, size_t elements,
                               void* out) {
  return guarded([&] {
    expect_numbers(op);
    const op::DefaultFloatEnvironment environment;
    if (elements != 0) {
      layout_of(op).pack(&object_at(static_cast<std::byte*>(out), "out"),
                         {&object_at(in, "in"), elements});
    }
    return WEIR_OK;
  });
}

weir_status weir_operator_unpack(const weir_operator* op, const void* in, size_t elements,
                                 float* out) {
  return guarded([&] {
    expect_numbers(op);
    const op::DefaultFloatEnvironment environment;
    if (elements != 0) {
      layout_of(op).unpack({&object_at(out, "out"), elements},
                           &object_at(static_cast<const std::byte*>(in), "in"));
    }
    return WEIR_OK;
  });
}

weir_status weir_operator_reduce(const weir_operator* op, void* out, const void* const* inputs,
                                 size_t count, size_t bytes) {
  return guarded([&] {
    if (count == 0 || count > kMaxWorld) {
      throw std::invalid_argument(
          fmt::format("count: found {}; allowed: 1 .. {}", count, kMaxWorld));
    }
    object_at(op, "op");
    object_at(inputs, "inputs");
    std::vector<const std::byte*> ranks;
    for (const void* input : std::span(inputs, count)) {
      ranks.push_back(&object_at(static_cast<const std::byte*>(input), "inputs"));
    }
    const op::DefaultFloatEnvironment environment;
    layout_of(op).reduce(&object_at(static_cast<std::byte*>(out), "out"), ranks.data(),
                         static_cast<unsigned>(count), bytes);
    return WEIR_OK;
  });
}
