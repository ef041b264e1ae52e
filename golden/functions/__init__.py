"""What does a special-function unit compute? The operations of MUFU (2^x, log2, 1/x, roots, sine, cosine,
tanh) and the PTX instructions that the compiler makes of them, code for code."""
