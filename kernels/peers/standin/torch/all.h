/* What one helper of the kernels' headers needs of PyTorch: a check that throws. */
#include <stdexcept>
#define TORCH_CHECK(condition, ...) throw std::runtime_error("vllm: unsupported KV type")
