// SPDX-License-Identifier: BSD-3-Clause

/// picture_as page|svg|metrics: reads a FabricPicture as JSON, and prints what the manager makes of
/// it. Tests read that with parsers of their own.

#include "manager/fabric_metrics.hpp"
#include "manager/picture_page.hpp"
#include "manager/picture_svg.hpp"

#include <google/protobuf/util/json_util.h>
#include <iostream>
#include <iterator>
#include <string>

int main(int argc, char** argv) {
  const std::string json(std::istreambuf_iterator<char>(std::cin), {});
  weir::v1::FabricPicture picture;
  const auto read = google::protobuf::util::JsonStringToMessage(json, &picture);
  const std::string as = argc == 2 ? argv[1] : "";
  if (!read.ok() || (as != "page" && as != "svg" && as != "metrics")) {
    std::cerr << "usage: picture_as page|svg|metrics < PICTURE.json: " << read.ToString() << "\n";
    return 2;
  }
  std::cout << (as == "page"  ? weir::manager::page_of(picture, {})
                : as == "svg" ? weir::manager::svg_of(picture, weir::manager::SvgUse::file)
                              : weir::manager::metrics_of(picture, {}));
  return 0;
}
