// SPDX-License-Identifier: BSD-3-Clause
#include "program/trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace weir::program {
namespace {

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
class Numbers {
 public:
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  /// 0 .. count - 1.
  std::uint32_t below(std::uint32_t count) {
    return static_cast<std::uint32_t>((next() >> 32) * count >> 32);
  }

 private:
  std::uint64_t state_ = 1;
};

/// The bits of a number that is neither large nor small.
std::uint64_t moderate_bits(Format format, Numbers& numbers) {
  const auto small = static_cast<std::int64_t>(numbers.below(256)) - 128;
  const auto fraction = static_cast<float>(static_cast<double>(small) / 32);
  switch (format) {
  case Format::f32:
    return std::bit_cast<std::uint32_t>(fraction);
  case Format::f64:
    return std::bit_cast<std::uint64_t>(static_cast<double>(fraction));
  case Format::bf16:
    return std::bit_cast<std::uint32_t>(fraction) >> 16;
  case Format::f16:
    return 0x3000 + numbers.below(0x1800);
  case Format::e8m0:
    return 119 + numbers.below(16);
  case Format::u8:
  case Format::u16:
  case Format::u32:
  case Format::u64:
    return numbers.below(200);
  default:
    return static_cast<std::uint64_t>(small);
  }
}

void put_moderate(std::byte* packet, const Code& code, Numbers& numbers) {
  const std::size_t units = code.units(TrialData::kBytes);
  for (std::size_t unit = 0; unit < units; ++unit) {
    if (code.is_block()) { // any code, near 1
      const unsigned bytes = code.unit_bytes - code.code_bytes;
      const std::uint64_t bits = moderate_bits(code.fields[1].format, numbers);
      std::memcpy(packet + units * code.code_bytes + unit * bytes, &bits, bytes);
      continue;
    }
    for (const Field& field : code.fields) {
      const std::uint64_t bits = moderate_bits(field.format, numbers);
      std::memcpy(packet + unit * code.unit_bytes + field.offset, &bits,
                  row_of(field.format).bits / 8);
    }
  }
}

using Packet = std::array<std::byte, TrialData::kBytes>;

Packet fold(const FoldProgram& program, std::span<const std::byte* const> inputs) {
  Packet out;
  program.reduce(out.data(), inputs.data(), static_cast<unsigned>(inputs.size()), out.size(), {});
  return out;
}

Packet identity_packet(const Code& code) {
  Packet packet{};
  const std::size_t units = code.units(packet.size());
  const std::vector<std::uint8_t>& unit = *code.identity;
  const std::size_t head = code.is_block() ? code.code_bytes : code.unit_bytes;
  const std::size_t tail = code.unit_bytes - head;
  for (std::size_t i = 0; i < units; ++i) {
    std::memcpy(packet.data() + i * head, unit.data(), head);
    std::memcpy(packet.data() + units * head + i * tail, unit.data() + head, tail);
  }
  return packet;
}

/// What random bits seldom are, and mistakes often about: zeros, the ends, infinity, NaN. Not for
/// blocks, whose codes and scales random bits find. The digest does not have it.
Packet special_packet(const Code& code) {
  const auto value_of = [](unsigned bits, std::size_t which) -> std::uint64_t {
    const std::uint64_t top = std::uint64_t{1} << (bits - 1);
    const std::uint64_t infinity = bits == 64 ? 0x7ffULL << 52 : bits == 32 ? 0x7f800000 : 0x7c00;
    const std::array<std::uint64_t, 8> all{0, top,      top - 1,        ~std::uint64_t{0},
                                           1, infinity, infinity | top, top | 1};
    return all[which % all.size()];
  };
  Packet packet{};
  for (std::size_t unit = 0; !code.is_block() && unit < code.units(packet.size()); ++unit) {
    std::size_t which = unit;
    for (const Field& field : code.fields) {
      const unsigned bits = row_of(field.format).bits;
      const std::uint64_t value = value_of(bits, which);
      std::memcpy(packet.data() + unit * code.unit_bytes + field.offset, &value, bits / 8);
      which /= 8;
    }
  }
  return packet;
}

void expect_same(const Packet& found, const Packet& due, std::string_view rule) {
  const auto [at, other] = std::ranges::mismatch(found, due);
  if (at != found.end()) {
    throw std::invalid_argument(
        fmt::format("the trial: {}: byte {} of a packet is {:02x} and should be {:02x}", rule,
                    at - found.begin(), static_cast<unsigned>(*at), static_cast<unsigned>(*other)));
  }
}

template <typename Fold>
std::vector<std::byte> results_by(const TrialData& data, Fold&& fold) {
  std::vector<std::byte> results;
  for (std::size_t set = 0; set < TrialData::kSets; ++set) {
    std::array<const std::byte*, TrialData::kInputs> inputs{};
    for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
      inputs[rank] = data.input(set, rank);
    }
    for (const std::size_t count : {inputs.size(), std::size_t{1}}) {
      const Packet packet = fold(std::span<const std::byte* const>(inputs).first(count));
      results.insert(results.end(), packet.begin(), packet.end());
    }
  }
  return results;
}

void expect_identity(const FoldProgram& program, const std::byte* x) {
  if (!program.code().identity) {
    return;
  }
  const Packet alone = fold(program, std::array{x});
  const Packet identity = identity_packet(program.code());
  constexpr std::string_view rule = "the identity joined to a value must be that value, "
                                    "finished (or say \"identity none\")";
  expect_same(fold(program, std::array<const std::byte*, 2>{identity.data(), x}), alone, rule);
  expect_same(fold(program, std::array<const std::byte*, 2>{x, identity.data()}), alone, rule);
}

} // namespace

TrialData::TrialData(const Code& code) : bytes_(kSets * kInputs * kBytes) {
  Numbers numbers;
  for (std::size_t at = 0; at < bytes_.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t random = numbers.next();
    std::memcpy(bytes_.data() + at, &random, sizeof random);
  }
  for (std::size_t packet = 0; packet < kSets * kInputs; ++packet) {
    if (packet / kInputs % 2 == 1) {
      put_moderate(bytes_.data() + packet * kBytes, code, numbers);
    }
  }
}

Measurement::Measurement(const FoldProgram& program, op::ReduceKernel kernel)
    : program_(program), kernel_(kernel), data_(program.code()) {
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    const std::size_t moderate_set = 1 + 2 * (rank / TrialData::kInputs);
    inputs_[rank] = data_.input(moderate_set, rank % TrialData::kInputs);
  }
}

void Measurement::fold() {
  if (kernel_ != nullptr) {
    kernel_(out_.data(), inputs_.data(), kRanks, out_.size(), {});
  } else {
    program_.reduce(out_.data(), inputs_.data(), kRanks, out_.size(), {});
  }
}

double Measurement::least_ns(int folds) {
  using Clock = std::chrono::steady_clock;
  auto least = Clock::duration::max();
  for (int done = 0; done < folds; ++done) {
    const auto begin = Clock::now();
    fold();
    least = std::min(least, Clock::now() - begin);
  }
  return static_cast<double>(std::chrono::nanoseconds(least).count()) / kRanks;
}

std::vector<std::byte> results_of(const TrialData& data, const FoldProgram& program) {
  return results_by(data, [&](auto inputs) { return fold(program, inputs); });
}

std::vector<std::byte> results_of(const TrialData& data, op::ReduceKernel kernel) {
  return results_by(data, [&](auto inputs) {
    Packet out;
    kernel(out.data(), inputs.data(), static_cast<unsigned>(inputs.size()), out.size(), {});
    return out;
  });
}

void check_rules(const TrialData& data, const FoldProgram& program) {
  for (std::size_t set = 0; set < TrialData::kSets; ++set) {
    const std::byte* const x = data.input(set, 0);
    const std::byte* const y = data.input(set, 1);
    const Packet alone = fold(program, std::array{x});
    const Packet both = fold(program, std::array{x, y});
    for (const Packet& finished : {alone, both}) {
      expect_same(
          fold(program, std::array{finished.data()}), finished,
          "finish of a finished value must be that value, since it comes into start again in "
          "a tree, or where there is one rank");
    }
    expect_identity(program, x);
  }
  expect_identity(program, special_packet(program.code()).data());
}

} // namespace weir::program
