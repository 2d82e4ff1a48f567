/* Empty: the kernels that are compiled from this include use nothing of PyTorch's. */
