/// Every kernel on the target that is a table.
#include "support/table_model.hpp"

#include <memory>

#include <poise/extend/engines/own_model.hpp>

namespace poise::testing {

Model table_model(const TableTarget& target) { return own_model("table", std::make_shared<const TableTarget>(target)); }

}  // namespace poise::testing
