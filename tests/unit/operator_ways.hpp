// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "op/kernel.hpp"
#include "program/fold_program.hpp"
#include "program/parse.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace weir::test {

using Packet = std::vector<std::byte>;
using Packets = std::vector<Packet>;

/// Of config/operators.
inline std::string operator_text(std::string_view name) {
  std::ifstream file(WEIR_SOURCE_ROOT "/config/operators/" + std::string(name) + ".weir");
  return {std::istreambuf_iterator<char>(file), {}};
}

/// One of the ways in which a text is folded.
struct Way {
  std::string name;
  std::shared_ptr<const program::FoldProgram> loops;
  op::ReduceKernel kernel = nullptr; // in the place of loops

  void reduce(std::byte* out, const std::vector<const std::byte*>& inputs, std::size_t bytes,
              op::Copies copies) const {
    const auto count = static_cast<unsigned>(inputs.size());
    if (kernel != nullptr) {
      kernel(out, inputs.data(), count, bytes, copies);
    } else {
      loops->reduce(out, inputs.data(), count, bytes, copies);
    }
  }

  Packet fold(const Packets& inputs) const {
    std::vector<const std::byte*> at;
    for (const Packet& packet : inputs) {
      at.push_back(packet.data());
    }
    Packet out(inputs.front().size());
    reduce(out.data(), at, out.size(), {});
    return out;
  }
};

/// All that this machine has.
inline std::vector<op::CpuLevel> levels() {
  std::vector<op::CpuLevel> here;
  for (const op::CpuLevel level : {op::CpuLevel::baseline, op::CpuLevel::avx2, op::CpuLevel::avx512,
                                   op::CpuLevel::avx512vbmi}) {
    if (level <= op::best_cpu_level()) {
      here.push_back(level);
    }
  }
  return here;
}

/// The loops of a text. The first way is the slow one: single steps, on the lowest level.
inline std::vector<Way> loops_of(const std::string& text) {
  std::vector<Way> ways;
  for (const op::CpuLevel level : levels()) {
    const std::string on = " on " + std::string(op::name_of(level));
    ways.push_back({"single steps" + on, std::make_shared<const program::FoldProgram>(
                                             program::parse(text, program::Fusing::off), level)});
    ways.push_back({"fused steps" + on,
                    std::make_shared<const program::FoldProgram>(program::parse(text), level)});
  }
  return ways;
}

class Dice {
 public:
  explicit Dice(unsigned seed) : engine_(seed) {}

  unsigned below(std::size_t count) { return static_cast<unsigned>(engine_() % count); }

  template <typename T>
  const T& one_of(const std::vector<T>& all) {
    return all[below(all.size())];
  }

  Packet bytes(std::size_t count) {
    Packet packet(count);
    std::ranges::generate(packet, [&] { return static_cast<std::byte>(engine_()); });
    return packet;
  }

  std::vector<std::size_t> permutation(std::size_t count) {
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), engine_);
    return order;
  }

 private:
  std::mt19937 engine_;
};

inline void put(Packet& packet, std::size_t at, std::uint64_t bits, std::size_t bytes) {
  std::memcpy(packet.data() + at, &bits, bytes);
}

inline std::uint64_t bits_at(const Packet& packet, std::size_t at, std::size_t bytes) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, packet.data() + at, bytes);
  return bits;
}

} // namespace weir::test
