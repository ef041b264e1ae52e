// The C++ side of the fast engine (rtl_tb/engines/fast.py): drives the verilated wrapper mmagold_dut from plain arrays.
//
// MG_IN_BYTES and MG_OUT_BYTES are the bytes of an operand and of a result word. Words are little-endian, as Verilator keeps
// ports on the little-endian machines that this engine supports, so that a word is one memcpy.
//
// Results come in the order of the vectors, so what is in flight is the range answered..sent. A reset loses it: `sent` goes
// back to `answered` and the vectors are sent again.

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "Vmmagold_dut.h"
#include "verilated.h"

namespace {

constexpr unsigned kTail = 256;      // cycles after the last result in which an extra one is noticed
constexpr unsigned kDrain = 64;      // idle cycles after every other reset, in which a result from before it is noticed
constexpr unsigned kPerKind = 16;    // failures of one kind that are kept
constexpr unsigned kKinds = 5;
constexpr unsigned kBudget = 1 << 20;  // cycles of one call of mg_run

enum Kind : uint32_t { kTimeout, kExtra, kUnstable, kDropped, kStale };
enum Status { kDone, kTimedOut, kEnded, kMore };  // as in fast.py
enum Pins : uint32_t { kInValid = 1, kInReady = 2, kOutValid = 4, kOutReady = 8 };

}  // namespace

// Must match _Settings, _Failure in fast.py.
struct Settings {
    const uint8_t* in;
    uint8_t* out;
    uint8_t* received;
    uint64_t count;
    uint64_t seed;
    uint32_t idle;          // probability * 2^32
    uint32_t backpressure;  // probability * 2^32
    uint32_t resets;
    uint32_t reset_cycles;
    uint32_t timeout;
};

struct Failure {
    uint32_t kind;
    uint32_t pins;
    uint64_t cycle;
    uint64_t vector;
    uint64_t in_flight;
};

// A design that calls $fatal, $stop or $finish must not end the Python process: the message goes to the caller instead.
void vl_fatal(const char* file, int line, const char*, const char* message) {
    char text[400];
    std::snprintf(text, sizeof text, "%s:%d: %s", file ? file : "?", line, message && *message ? message : "$fatal");
    throw std::runtime_error(text);
}
void vl_stop(const char* file, int line, const char* scope) { vl_fatal(file, line, scope, "$stop, $error or $fatal"); }
void vl_finish(const char* file, int line, const char* scope) { vl_fatal(file, line, scope, "$finish"); }

// A missing file leaves the memory as it was, so that all results are wrong without a reason.
void vl_warn(const char* file, int line, const char* scope, const char* message) {
    if (message && std::strstr(message, "$readmem file not found")) vl_fatal(file, line, scope, message);
    std::fprintf(stderr, "%%Warning: %s:%d: %s\n", file ? file : "?", line, message ? message : "");
}

class Harness {
public:
    explicit Harness(const Settings& settings) : s(settings), random(settings.seed * 0x9E3779B97F4A7C15ull | 1) {
        context->randReset(2);
        context->randSeed(static_cast<int>(settings.seed & 0x7FFFFFFF) | 1);
        top = std::make_unique<Vmmagold_dut>(context.get(), "mmagold_dut");
        reset();
    }

    // Runs until `target` vectors are answered, the DUT stopped answering, or it is time to look for Ctrl-C.
    Status run(uint64_t target) {
        for (unsigned budget = kBudget; answered < target; --budget) {
            if (!budget) return kMore;
            if (reset_due()) reset_in_flight();
            const bool offer = choose_input();
            cycle(offer, !chance(s.backpressure));
            if (quiet > s.timeout) {
                record(kTimeout);
                return kTimedOut;
            }
        }
        return kDone;
    }

    void tail() {
        for (unsigned i = 0; i < kTail; ++i) idle_cycle();
    }

    Settings s;
    uint64_t cycles = 0, answered = 0;
    Failure failures[kKinds * kPerKind];
    uint32_t failure_count = 0;
    char error[400] = "";

private:
    std::unique_ptr<VerilatedContext> context = std::make_unique<VerilatedContext>();
    std::unique_ptr<Vmmagold_dut> top;
    uint64_t random, sent = 0, quiet = 0;
    uint32_t pins = 0, resets_done = 0, countdown = 0, kept[kKinds] = {};
    bool offering = false, stalled = false, fresh_reset = false;
    uint8_t held[MG_OUT_BYTES];

    bool chance(uint32_t probability) { return probability && next_random() < probability; }

    uint32_t next_random() {  // xorshift64*
        random ^= random >> 12;
        random ^= random << 25;
        random ^= random >> 27;
        return static_cast<uint32_t>((random * 0x2545F4914F6CDD1Dull) >> 32);
    }

    // A vector once offered stays until it is taken, as the protocol demands of a source.
    bool choose_input() {
        if (!offering) {
            offering = sent != s.count && !chance(s.idle);
            show(offering ? sent : next_random() % s.count);
        }
        return offering;
    }

    // An idle cycle, also one after the last vector, carries some other vector, so that a DUT that ignores in_valid is noticed.
    void idle_cycle() {
        if (s.count) show(next_random() % s.count);
        cycle(false, true);
    }

    void show(uint64_t index) {
        std::memcpy(static_cast<void*>(&top->in_data), s.in + index * MG_IN_BYTES, MG_IN_BYTES);
    }

    void cycle(bool in_valid, bool out_ready) {
        top->in_valid = in_valid;
        top->out_ready = out_ready;
        top->clk = 0;
        top->eval();
        const bool in_ready = top->in_ready, out_valid = top->out_valid;
        pins = in_valid * kInValid | in_ready * kInReady | out_valid * kOutValid | out_ready * kOutReady;
        ++quiet;
        check_stall(out_valid);
        if (in_valid && in_ready) {
            ++sent;
            offering = fresh_reset = false;
            quiet = 0;
        }
        if (out_valid && out_ready) take();
        hold(out_valid && !out_ready);
        top->clk = 1;
        top->eval();
        ++cycles;
    }

    void take() {
        if (answered == sent) return record(fresh_reset ? kStale : kExtra);
        std::memcpy(s.out + answered * MG_OUT_BYTES, static_cast<const void*>(&top->out_data), MG_OUT_BYTES);
        s.received[answered++] = 1;
        quiet = 0;
    }

    void check_stall(bool out_valid) {
        if (!stalled) return;
        if (!out_valid) record(kDropped);
        else if (std::memcmp(held, static_cast<const void*>(&top->out_data), MG_OUT_BYTES)) record(kUnstable);
    }

    void hold(bool stall) {
        stalled = stall;
        if (stall) std::memcpy(held, static_cast<const void*>(&top->out_data), MG_OUT_BYTES);
    }

    void record(Kind kind) {
        if (kept[kind]++ < kPerKind) failures[failure_count++] = {kind, pins, cycles, answered, sent - answered};
    }

    // Reset number r comes 1 to 8 cycles after vector r / (resets + 1) of the run was taken.
    bool reset_due() {
        if (countdown) return --countdown == 0;
        if (resets_done == s.resets || sent * (s.resets + 1) < (resets_done + 1) * s.count) return false;
        countdown = next_random() % 8 + 1;
        return --countdown == 0;
    }

    void reset_in_flight() {
        sent = answered;
        reset();
        fresh_reset = true;
        for (unsigned i = 0; resets_done % 2 == 0 && i < kDrain; ++i) idle_cycle();
        ++resets_done;
        quiet = 0;
    }

    void reset() {
        top->rst_n = 0;
        top->in_valid = 0;
        top->out_ready = 0;
        offering = stalled = false;
        for (uint32_t i = 0; i < s.reset_cycles; ++i, ++cycles) {
            top->clk = 0;
            top->eval();
            top->clk = 1;
            top->eval();
        }
        top->rst_n = 1;
    }
};

#define MG_API extern "C" __attribute__((visibility("default")))

// Every call catches what vl_fatal throws: the message is then in mg_error.
template <typename Work>
int guarded(Harness* harness, Work work) {
    try {
        return work();
    } catch (const std::exception& failure) {
        std::snprintf(harness->error, sizeof harness->error, "%s", failure.what());
        return kEnded;
    }
}

MG_API Harness* mg_open(const Settings* settings, char* error, uint32_t size) {
    try {
        return new Harness(*settings);
    } catch (const std::exception& failure) {
        std::snprintf(error, size, "%s", failure.what());
        return nullptr;
    }
}
MG_API int mg_run(Harness* h, uint64_t target) { return guarded(h, [&] { return h->run(target); }); }
MG_API int mg_tail(Harness* h) { return guarded(h, [&] { h->tail(); return kDone; }); }
MG_API uint64_t mg_cycles(const Harness* h) { return h->cycles; }
MG_API const char* mg_error(const Harness* h) { return h->error; }
MG_API uint32_t mg_failures(const Harness* h, const Failure** list) {
    *list = h->failures;
    return h->failure_count;
}
MG_API void mg_close(Harness* h) { delete h; }
