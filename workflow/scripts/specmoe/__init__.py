"""specmoe: does speculative decoding speed up Mixture-of-Experts models in llama.cpp?"""
