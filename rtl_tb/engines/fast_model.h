// The verilated wrapper as the harness sees it: pointers to its ports, and the steps of a simulation. Nothing here depends on
// the unit.

#pragma once

#include <cstdint>

// Verilator calls these where a design ends the simulation or complains; the harness defines them.
void vl_fatal(const char* file, int line, const char* scope, const char* message);
void vl_stop(const char* file, int line, const char* scope);
void vl_finish(const char* file, int line, const char* scope);
void vl_warn(const char* file, int line, const char* scope, const char* message);

struct Model {
    uint8_t *clk, *rst_n, *in_valid, *in_ready, *out_valid, *out_ready;
    uint8_t *in_data, *out_data;  // little-endian words
    bool timing;                  // whether the design has delays or waits, for which alone time has to pass

    // `start`: what signals hold that nothing has set, see Settings of the harness.
    static Model* make(int start, int seed);

    int precision() const;  // of times: 10 to this power, in seconds
    void time(uint64_t now);
    bool pending_before(uint64_t until);  // whether something happens before; if so, it is that time now
    void eval();
    void finish();
};
