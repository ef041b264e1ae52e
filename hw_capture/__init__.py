"""Capture of real GPUs: kernels generated from the spec, what they became in SASS, recorded outputs, and
their replay.

    from hw_capture import capture, toolchain, verify
    verify.verify(Path("vectors"))                            # needs no GPU
    capture.capture("hopper", Path("vectors/hopper"))         # needs a Hopper GPU, nvcc and PyCUDA

`kernels` turns an instruction into CUDA C++, `toolchain` compiles and disassembles it, `sass` holds the
result against the spec, `device` runs it.
"""
