#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

namespace longca {

/// A JSON value that its copies share until one of them is changed: thousands of records of a run
/// have one environment.
class SharedJson {
 public:
  SharedJson() = default;  ///< null
  SharedJson(nlohmann::json value) : value_(std::make_shared<nlohmann::json>(std::move(value))) {}
  SharedJson(nlohmann::json::initializer_list_t list) : SharedJson(nlohmann::json(list)) {}

  const nlohmann::json& operator*() const {
    static const nlohmann::json null;
    return value_ ? *value_ : null;
  }
  const nlohmann::json* operator->() const { return &**this; }
  operator const nlohmann::json&() const { return **this; }
  /// As those of json, for a key or a json_pointer.
  template <typename Place>
  bool contains(const Place& place) const {
    return (**this).contains(place);
  }
  template <typename Place>
  const nlohmann::json& at(const Place& place) const {
    return (**this).at(place);
  }

  /// For a change, which the copies do not see.
  nlohmann::json& own() {
    if (value_.use_count() != 1) value_ = std::make_shared<nlohmann::json>(**this);
    return *value_;
  }

 private:
  std::shared_ptr<nlohmann::json> value_;  ///< null pointer: JSON null
};

}  // namespace longca
