// A Model of the class that Verilator made of the wrapper mmagold_dut. It is compiled with each unit, in the file that holds
// Verilator's classes of it, and is short for that reason.

#include "Vmmagold_dut.h"
#include "fast_model.h"
#include "verilated.h"

// Of Verilator's makefile: 1 for a design with delays or waits.
#ifndef VM_TIMING
#define VM_TIMING 0
#endif

static VerilatedContext* context;
static Vmmagold_dut* top;

template <typename Port>
static uint8_t* bytes(Port& port) {
    return reinterpret_cast<uint8_t*>(&port);
}

Model* Model::make(int start, int seed) {
    static const char* words[] = {"dut"};  // none for the unit: $test$plusargs without it ends the run
    context = new VerilatedContext;
    context->commandArgs(1, words);
    context->randReset(start);
    context->randSeed(seed);
    top = new Vmmagold_dut(context, "mmagold_dut");
    return new Model{&top->clk,         &top->rst_n,        &top->in_valid,       &top->in_ready, &top->out_valid,
                     &top->out_ready,   bytes(top->in_data), bytes(top->out_data), VM_TIMING != 0};
}

int Model::precision() const { return context->timeprecision(); }
void Model::time(uint64_t now) { context->time(now); }
void Model::eval() { top->eval(); }
void Model::finish() { top->final(); }

bool Model::pending_before(uint64_t until) {
    if (!top->eventsPending() || top->nextTimeSlot() >= until) return false;
    context->time(top->nextTimeSlot());
    return true;
}
