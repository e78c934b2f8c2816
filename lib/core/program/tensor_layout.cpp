// SPDX-License-Identifier: BSD-3-Clause
#include "program/tensor_layout.hpp"

#include <algorithm>
#include <vector>

namespace weir::program {

std::size_t TensorLayout::elements_of_message() const {
  const Code& code = program_.code();
  std::size_t elements = 0;
  for (std::size_t offset = 0; offset < messages_.message_data();) {
    const std::size_t bytes = messages_.packet_at(offset);
    elements += code.units(bytes) * code.unit_lanes();
    offset += bytes;
  }
  return elements;
}

std::size_t TensorLayout::first_of_message(std::size_t element) const {
  return element - element % elements_of_message();
}

template <typename Visit>
void TensorLayout::each_packet(std::size_t first, std::size_t elements, Visit&& visit) const {
  const Code& code = program_.code();
  Packet packet{.offset = first == 0 ? 0 : first / elements_of_message() * messages_.message_data(),
                .first = first};
  while (packet.first < elements) {
    const std::size_t bytes = messages_.packet_at(packet.offset);
    packet.elements = std::min(code.units(bytes) * code.unit_lanes(), elements - packet.first);
    visit(packet, bytes);
    packet.first += packet.elements;
    packet.offset += bytes;
  }
}

std::size_t TensorLayout::bytes_of(std::size_t elements) const {
  if (elements == 0 || elements > kMostElements) {
    return 0;
  }
  const Code& code = program_.code();
  std::size_t all = 0;
  each_packet(
      first_of_message(elements - 1), elements, [&](const Packet& packet, std::size_t bytes) {
        const std::size_t units = (packet.elements + code.unit_lanes() - 1) / code.unit_lanes();
        const bool is_last = packet.first + packet.elements == elements;
        all = packet.offset + (is_last ? std::min(code.bytes_for(units), bytes) : bytes);
      });
  return all;
}

std::size_t TensorLayout::place_of(std::size_t element) const {
  if (element >= kMostElements) {
    return 0;
  }
  const Code& code = program_.code();
  std::size_t place = 0;
  each_packet(first_of_message(element), element + 1, [&](const Packet& packet, std::size_t) {
    const std::size_t in_packet = element - packet.first;
    const std::size_t bytes = code.is_block() ? code.code_bytes : code.unit_bytes;
    place = packet.offset + in_packet * bytes / code.unit_lanes();
  });
  return place;
}

void TensorLayout::pack(std::byte* packed, std::span<const float> numbers) const {
  const std::size_t all = bytes_of(numbers.size());
  each_packet(0, numbers.size(), [&](const Packet& packet, std::size_t bytes) {
    program_.pack(packed + packet.offset, std::min(bytes, all - packet.offset),
                  numbers.subspan(packet.first, packet.elements));
  });
}

void TensorLayout::unpack(std::span<float> numbers, const std::byte* packed) const {
  const std::size_t all = bytes_of(numbers.size());
  each_packet(0, numbers.size(), [&](const Packet& packet, std::size_t bytes) {
    program_.unpack(numbers.subspan(packet.first, packet.elements), packed + packet.offset,
                    std::min(bytes, all - packet.offset));
  });
}

void TensorLayout::reduce(std::byte* out, const std::byte* const* inputs, unsigned count,
                          std::size_t bytes) const {
  std::vector<const std::byte*> at(inputs, inputs + count);
  for (std::size_t offset = 0; offset < bytes;) {
    const std::size_t packet = std::min(messages_.packet_at(offset), bytes - offset);
    program_.reduce(out + offset, at.data(), count, packet, {});
    for (const std::byte*& input : at) {
      input += packet;
    }
    offset += packet;
  }
}

} // namespace weir::program
