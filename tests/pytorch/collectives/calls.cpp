// Collectives that no process group runs: the scopes that torch's process groups open around them, by torch's own macros.

#include <string>
#include <tuple>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>

namespace {

using Group = std::tuple<std::string, std::string>;
using Sizes = std::vector<int64_t>;

std::tuple<int64_t, bool> number(int64_t sequence) { return {sequence, false}; }

}  // namespace

extern "C" void exchange(const char* name, const char* group, const char* description, int64_t sequence, int64_t elements, int size) {
  const Group names{group, description};
  const std::vector<at::Tensor> inputs{at::ones({elements})};
  const std::vector<at::Tensor> outputs{at::ones({elements * size})};
  const bool has_splits = std::string(name) == "all_to_allv";
  const Sizes in_splits = has_splits ? Sizes{1, elements - 1} : Sizes{};
  const Sizes out_splits = has_splits ? Sizes{elements - 1, 1} : Sizes{};
  RECORD_PARAM_COMMS_DATA(number(sequence), names, inputs, outputs, 1, name, elements, elements * size, at::kFloat, in_splits,
                          out_splits, 0, 2, size);
  at::neg(inputs[0]);
}

extern "C" void barrier(int64_t sequence) {
  const Group names{"0", "default_pg"};
  const Sizes none;
  RECORD_PARAM_COMMS(number(sequence), names, 0, "barrier", 0, 0, at::kByte, none, none, 0, 1, 2);
}

// A scope of the name without a description: torch writes a warning and nothing else about it.
extern "C" void undescribed() { RECORD_FUNCTION("record_param_comms", std::vector<c10::IValue>{}); }
