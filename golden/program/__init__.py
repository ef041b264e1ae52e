"""What an instruction computes: programs of primitive steps, read, checked, compiled and described."""
