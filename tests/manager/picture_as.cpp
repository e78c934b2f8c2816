// SPDX-License-Identifier: BSD-3-Clause

/// picture_as page|svg|metrics|slurm|kubernetes: reads a FabricPicture as JSON, and prints what the
/// manager makes of it. Tests read that with parsers of their own.

#include "manager/fabric_metrics.hpp"
#include "manager/picture_page.hpp"
#include "manager/picture_svg.hpp"
#include "manager/scheduler_files.hpp"

#include <exception>
#include <functional>
#include <google/protobuf/util/json_util.h>
#include <iostream>
#include <iterator>
#include <map>
#include <string>

int main(int argc, char** argv) {
  using weir::v1::FabricPicture;
  namespace manager = weir::manager;
  const std::map<std::string, std::function<std::string(const FabricPicture&)>> kinds{
      {"page", [](const auto& picture) { return manager::page_of(picture, {}); }},
      {"svg", [](const auto& picture) { return manager::svg_of(picture, manager::SvgUse::file); }},
      {"metrics", [](const auto& picture) { return manager::metrics_of(picture, {}); }},
      {"slurm", manager::slurm_of},
      {"kubernetes",
       [](const auto& picture) {
         return manager::kubernetes_of(picture, manager::kTopographKeys);
       }},
  };
  const std::string json(std::istreambuf_iterator<char>(std::cin), {});
  FabricPicture picture;
  const auto read = google::protobuf::util::JsonStringToMessage(json, &picture);
  const auto kind = kinds.find(argc == 2 ? argv[1] : "");
  if (!read.ok() || kind == kinds.end()) {
    std::cerr << "usage: picture_as page|svg|metrics|slurm|kubernetes < PICTURE.json: "
              << read.ToString() << "\n";
    return 2;
  }
  try {
    std::cout << kind->second(picture);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
