// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace weir::test {

/// The frames of a file of tests/replay/captures, which Linux soft-RoCE sent.
inline std::vector<std::vector<std::uint8_t>> captured_frames(const std::string& name) {
  std::vector<std::vector<std::uint8_t>> frames;
  const std::string path = WEIR_SOURCE_ROOT "/tests/replay/captures/" + name;
  std::array<char, PCAP_ERRBUF_SIZE> error{};
  const std::unique_ptr<pcap_t, decltype(&pcap_close)> file(
      pcap_open_offline(path.c_str(), error.data()), pcap_close);
  if (file == nullptr) {
    ADD_FAILURE() << error.data();
    return frames;
  }
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  while (pcap_next_ex(file.get(), &header, &data) == 1) {
    frames.emplace_back(data, data + header->caplen);
  }
  return frames;
}

} // namespace weir::test
