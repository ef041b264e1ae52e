"""Capture of real GPUs: kernels generated from the spec, what they became in SASS, recorded outputs, and
their replay.

    from hw_capture.record.verify import verify
    verify(Path("vectors")).passed                            # needs no GPU

`kernels` turns an instruction into CUDA C++, compiles and disassembles it and holds the result against the
spec; `record`, `campaign` and `bench` run it on a GPU (`gpu`).
"""
