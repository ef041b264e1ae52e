// The C++ side of the fast engine (rtl_tb/engines/fast.py): drives the verilated wrapper mmagold_dut from files. It knows the
// wrapper through fast_model.h alone, so that one object serves all units.
//
//   dut OPERANDS TRAFFIC RESULTS PROGRESS ANSWERS count seed stalls resets reset_cycles timeout state start in out last tail
//
// TRAFFIC holds four 32-bit words for each vector: what lies between it and its neighbours, as rtl_tb/engines/traffic.py draws
// it. Nothing of the traffic is decided here. OPERANDS and RESULTS hold words of `in` and `out` bytes, little-endian, as Verilator keeps
// ports on the little-endian machines that this engine supports, so that a word is one memcpy. PROGRESS holds two 64-bit counters: vectors
// answered, clock cycles. ANSWERS is written last: one line "F kind cycle vector pins in_flight" for each failure of the
// handshake, "C cycle vector pins in_flight before now" with the words in hex, as they lie in RESULTS, for each vector that was
// answered again with other bits, then "D answered cycles resets waited lines"; or "E cycle message" where the DUT ended the simulation.
//
//   dut ... tail RUNS seconds
//
// RUNS holds a line for each of many runs of the same vectors: variables of the environment for it, NAME=VALUE, with a space
// between. Each runs in a process of its own, `seconds` at most; RESULTS holds the results of all, one run after the other, and
// ANSWERS a line for each: how many vectors were answered before it ended or broke the handshake, less than all if it did.
//
// Results come in the order of the vectors, so what is in flight is the range answered..sent. A reset loses it: `sent` goes
// back to `answered` and the vectors are sent again. It also clears a state: both then go back to the last vector with `clear`
// (bit 0 of a word), which is sent without it, since after a reset the state is zero; what was answered before must be
// answered as before.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "fast_model.h"
#include "mmagold_rules.h"

namespace {

// Of the words of TRAFFIC, as rtl_tb/engines/traffic.py has them.
constexpr uint32_t kEngaged = MG_ENGAGED, kDrained = MG_DRAINED;
constexpr unsigned kLimit = MG_LIMIT, kMostExpired = MG_MOST_EXPIRED;
constexpr unsigned kPerKind = 16;    // failures of one kind that are kept
constexpr unsigned kKinds = 8;
constexpr uint64_t kPicoseconds = 10'000;  // of a clock cycle

enum Kind : uint32_t { kTimeout, kExtra, kUnstable, kDropped, kStale, kXOnHandshake, kChanged, kFollows };

}  // namespace

struct Settings {
    uint64_t count;
    uint64_t seed;
    uint64_t stalls;        // 1: results have to wait
    uint64_t resets;
    uint64_t reset_cycles;
    uint64_t timeout;
    uint64_t state;         // 1: the unit keeps its accumulator; 2: and its `clear` has no products
    uint64_t start;         // what signals hold that nothing has set: 0 zeros, 1 ones, 2 random bits
    uint64_t in_bytes, out_bytes;  // of a word of operands, and of results
    uint64_t in_last;       // the bits of the last byte of a word of operands
    uint64_t tail;          // cycles after the last result in which an extra one is noticed
};
constexpr int kSettings = sizeof(Settings) / sizeof(uint64_t);

struct Failure {
    uint32_t kind;
    char pins[5];  // in_valid, in_ready, out_valid, out_ready
    uint64_t cycle, vector, in_flight;
};

// Another answer than before the reset: whether both are as good, the host knows.
struct Changed {
    Failure where;
    std::vector<uint8_t> before, now;
};

struct Progress {
    volatile uint64_t answered, cycles;
    volatile uint64_t broken;  // 1 + the vectors answered when the handshake was broken first; 0: it was not
};

static bool one_of_many = false;  // whether this process is one run of many, whose exit status alone is looked at
static const char* answers_path;
static Progress* progress;

static std::FILE* open_answers() {
    std::FILE* file = std::fopen(answers_path, "w");
    if (!file) std::perror(answers_path), _exit(2);
    return file;
}

// A design that calls $fatal, $stop or $finish ends the run with a message in ANSWERS, at once: nothing may be thrown through
// a process of the design that waits for time to pass.
void vl_fatal(const char* file, int line, const char*, const char* message) {
    if (one_of_many) _exit(3);
    std::string text = message && *message ? message : "$fatal";
    std::replace(text.begin(), text.end(), '\n', ' ');
    std::FILE* answers = open_answers();
    std::fprintf(answers, "E %llu %s:%d: %s\n", static_cast<unsigned long long>(progress->cycles), file ? file : "?", line,
                 text.c_str());
    const bool whole = !std::ferror(answers) && std::fclose(answers) == 0;
    std::fflush(nullptr);
    _exit(whole ? 0 : 2);
}
void vl_stop(const char* file, int line, const char* scope) { vl_fatal(file, line, scope, "$stop, $error or $fatal"); }
void vl_finish(const char* file, int line, const char* scope) { vl_fatal(file, line, scope, "$finish"); }

// A missing file leaves the memory as it was, so that all results are wrong without a reason.
void vl_warn(const char* file, int line, const char* scope, const char* message) {
    if (message && std::strstr(message, "$readmem file not found")) vl_fatal(file, line, scope, message);
    std::fprintf(stderr, "%%Warning: %s:%d: %s\n", file ? file : "?", line, message ? message : "");
}

struct Between {
    uint32_t gap, stall, other, reset;
};

// A wait of one side, for one transaction: begun once, by its word, and over when its cycles are.
class Wait {
public:
    bool over() const { return !left; }
    bool begun() const { return active; }
    void begin(uint32_t word) { active = true, left = word & (kEngaged - 1), engaged = word >= kEngaged, limit = kLimit; }
    void end() { active = false, left = 0; }

    // A cycle of it; `met`: whether the other side is ready, or valid.
    void pass(bool met) {
        if (!left) return;
        if (!engaged || met || expired >= kMostExpired) --left;
        else if (--limit == 0) left = 0, ++expired;
    }

private:
    bool active = false, engaged = false;
    uint32_t left = 0, limit = 0, expired = 0;
};

class Harness {
public:
    Harness(const Settings& settings, const uint8_t* in, const Between* traffic, uint8_t* out)
        : s(settings), in(in), traffic(traffic), out(out),
          top(Model::make(static_cast<int>(settings.start), static_cast<int>(settings.seed & 0x7FFFFFFF) | 1)) {
        held.resize(s.out_bytes);
        half = kPicoseconds / 2;
        for (int precision = -12; precision > top->precision(); --precision) half *= 10;
    }

    // Runs until all vectors are answered or the DUT stopped answering.
    void run() {
        reset();
        while (armed() || answered < s.count) {
            if (reset_due()) reset_in_flight();
            const bool offer = choose_input();
            cycle(offer, choose_ready(offer));
            if (quiet > s.timeout) return record(kTimeout);
        }
        for (uint64_t i = 0; i < s.tail; ++i) idle_cycle();
    }

    // `final` blocks of the design may complain, too.
    void finish() { top->finish(); }

    void write(std::FILE* file) const {
        for (uint32_t i = 0; i < failure_count; ++i) {
            const Failure& f = failures[i];
            std::fprintf(file, "F %u %llu %llu %s %llu\n", f.kind, ull(f.cycle), ull(f.vector), f.pins, ull(f.in_flight));
        }
        for (const Changed& c : changed) {
            const Failure& f = c.where;
            std::fprintf(file, "C %llu %llu %s %llu ", ull(f.cycle), ull(f.vector), f.pins, ull(f.in_flight));
            for (const uint8_t byte : c.before) std::fprintf(file, "%02x", byte);
            std::fputc(' ', file);
            for (const uint8_t byte : c.now) std::fprintf(file, "%02x", byte);
            std::fputc('\n', file);
        }
        std::fprintf(file, "D %llu %llu %llu %llu %llu\n", ull(answered), ull(cycles), ull(resets_done), ull(waited),
                     ull(failure_count + changed.size()));
    }

private:
    Settings s;
    const uint8_t* in;
    const Between* traffic;
    uint8_t* out;
    uint64_t cycles = 0, answered = 0, waited = 0, half = 0;
    Failure failures[kKinds * kPerKind];
    uint32_t failure_count = 0;
    std::vector<Changed> changed;
    Model* top;  // until the process ends
    uint64_t sent = 0, quiet = 0, resets_done = 0, most_answered = 0, shown = 0, next_event = 0;
    uint32_t countdown = 0, event = 0, kept[kKinds] = {};
    char pins[5] = "0000";
    Wait gap, stall;
    bool offering = false, stalled = false, fresh_reset = false;
    std::vector<uint8_t> held;

    static unsigned long long ull(uint64_t number) { return number; }

    // A vector once offered stays until it is taken, as the protocol demands of a source. An idle cycle carries others, so that
    // a DUT that ignores in_valid is noticed.
    bool choose_input() {
        if (offering) return true;
        if (sent != s.count && !gap.begun()) {
            gap.begin(traffic[sent].gap);
            shown = traffic[sent].other;
        }
        offering = sent != s.count && gap.over() && !draining();
        if (!offering) show(shown++ % s.count);
        else if (show(sent), fresh_reset) show_after_reset();
        return offering;
    }

    // Behind a reset, and when all is answered, what comes is too much, and is taken.
    bool choose_ready(bool offer) {
        if (answered == s.count || (fresh_reset && !offer)) return true;
        if (!stall.begun()) stall.begin(traffic[answered].stall);
        return stall.over();
    }

    // Before some resets all that is in flight comes.
    bool draining() const { return countdown && (event & kDrained); }

    void idle_cycle() {
        if (s.count) show(shown++ % s.count);
        cycle(false, true);
    }

    void show(uint64_t index) {
        std::memcpy(top->in_data, in + index * s.in_bytes, s.in_bytes);
    }

    // What a unit takes in during a reset must not matter. Every other reset shows some vector's complement: many operands
    // are zero, and a unit that keeps a zero would look right. Bits of the last byte that the port has not stay zero.
    void show_in_reset() {
        show(shown++ % s.count);
        uint8_t* bytes = top->in_data;
        for (unsigned i = 0; resets_done % 2 == 0 && i < s.in_bytes; ++i)
            bytes[i] ^= i + 1 == s.in_bytes ? s.in_last : 0xFF;
    }

    // The state is zero after a reset: the vector with `clear` is sent without it, and what clears alone, which has no
    // products, as nothing but zeros.
    void show_after_reset() {
        if (s.state == 1) *top->in_data &= 0xFE;
        if (s.state == 2) std::memset(top->in_data, 0, s.in_bytes);
    }

    // What the RTL delays happens in its order up to `until`, which is left to the caller.
    void pass_time(uint64_t until) {
        while (top->timing && top->pending_before(until)) top->eval();
        top->time(until);
    }

    // From one rising edge, after which the inputs change, to the next. They change while the clock is high: a latch that is open
    // then lets them through, and a clock that is gated by one of them without a latch has a glitch.
    void clock() {
        const uint64_t edge = 2 * half * cycles;
        top->eval();
        if (top->timing) pass_time(edge + half);
        top->time(edge + half);
        *top->clk = 0;
        top->eval();
        pass_time(edge + 2 * half);
    }

    void rise() {
        *top->clk = 1;
        top->eval();
        progress->cycles = ++cycles;
    }

    void cycle(bool in_valid, bool out_ready) {
        *top->in_valid = in_valid;
        *top->out_ready = out_ready;
        clock();
        const bool in_ready = *top->in_ready, out_valid = *top->out_valid;
        const bool levels[] = {in_valid, in_ready, out_valid, out_ready};
        for (int i = 0; i < 4; ++i) pins[i] = '0' + levels[i];
        check_paths(out_valid, out_ready);
        if (!in_valid && answered == sent) quiet = 0;
        else if (out_ready) ++quiet;
        if (!in_valid) gap.pass(in_ready);
        if (!out_ready) stall.pass(out_valid);
        check_stall(out_valid);
        if (in_valid && in_ready) {
            ++sent;
            gap.end();
            offering = fresh_reset = false;
            quiet = 0;
        }
        if (out_valid && out_ready) take();
        hold(out_valid && !out_ready);
        rise();
    }

    void take() {
        if (answered == sent) return record(fresh_reset ? kStale : kExtra);
        uint8_t* place = out + answered * s.out_bytes;
        const void* result = top->out_data;
        if (answered < most_answered && std::memcmp(place, result, s.out_bytes)) {
            note_break();
            Changed& c = changed.emplace_back();
            c.where = here(kChanged);
            c.before.assign(place, place + s.out_bytes);
            c.now.assign(top->out_data, top->out_data + s.out_bytes);
        }
        std::memcpy(place, result, s.out_bytes);
        progress->answered = ++answered;
        stall.end();
        most_answered = std::max(most_answered, answered);
        quiet = 0;
    }

    void check_stall(bool out_valid) {
        if (!stalled) return;
        if (!out_valid) record(kDropped);
        else if (std::memcmp(held.data(), top->out_data, s.out_bytes)) record(kUnstable);
    }

    // A source that waits with valid for ready, and a sink that waits with ready for valid, would wait for ever.
    void check_paths(bool out_valid, bool out_ready) {
        if (top->timing || !s.stalls) return;
        *top->out_ready = !out_ready;
        top->eval();
        if (static_cast<bool>(*top->out_valid) != out_valid) record(kFollows);
        *top->out_ready = out_ready;
        top->eval();
    }

    void hold(bool stall) {
        stalled = stall;
        waited += stall;
        if (stall) std::memcpy(held.data(), top->out_data, s.out_bytes);
    }

    void record(Kind kind) {
        note_break();
        if (kept[kind]++ >= kPerKind) return;
        failures[failure_count++] = here(kind);
    }

    void note_break() {
        if (!progress->broken) progress->broken = 1 + answered;
    }

    Failure here(Kind kind) const {
        Failure f = {kind, "", cycles, answered, sent - answered};
        std::memcpy(f.pins, pins, sizeof pins);
        return f;
    }

    // Whether a reset is to come: each is armed once, when its vector was taken.
    bool armed() {
        if (countdown || resets_done == s.resets) return countdown;
        while (next_event < sent && !traffic[next_event].reset) ++next_event;
        if (next_event >= sent) return false;
        event = traffic[next_event++].reset;
        return countdown = event & 0xFF;
    }

    // It is due some cycles later, or some after nothing is in flight any more.
    bool reset_due() {
        if (!countdown || (draining() && (offering || answered != sent))) return false;
        return --countdown == 0;
    }

    void reset_in_flight() {
        if (s.state && answered != s.count)
            while (answered && !(in[answered * s.in_bytes] & 1)) --answered;
        sent = answered;
        reset();
        fresh_reset = true;
        gap.begin(event >> 16);
        ++resets_done;
        armed();
        quiet = 0;
    }

    void reset() {
        *top->rst_n = 0;
        *top->in_valid = 0;
        *top->out_ready = 0;
        offering = stalled = false;
        gap.end();
        stall.end();
        for (uint64_t i = 0; i < s.reset_cycles; ++i) {
            if (s.count) show_in_reset();
            clock();
            rise();
        }
        *top->rst_n = 1;
    }
};

// Maps a file of this size into memory; `flags` as of open().
static void* map_file(const char* path, size_t size, int flags) {
    const int file = open(path, flags, 0600);
    const bool writes = flags != O_RDONLY;
    if (file < 0 || (writes && ftruncate(file, static_cast<off_t>(size)) != 0)) std::perror(path), std::exit(2);
    void* at = mmap(nullptr, size, PROT_READ | (writes ? PROT_WRITE : 0), MAP_SHARED, file, 0);
    if (at == MAP_FAILED) std::perror(path), std::exit(2);
    close(file);
    return at;
}

// Each line of a file as one run, in a process of its own, which shares `progress`.
static int run_many(const Settings& settings, const uint8_t* in, const Between* traffic, uint8_t* out, const char* path,
                    long milliseconds) {
    std::string good;
    std::ifstream runs(path);
    for (std::string line; std::getline(runs, line); out += settings.count * settings.out_bytes) {
        progress->answered = progress->broken = 0;
        const pid_t process = fork();
        if (process < 0) return std::perror("fork"), 2;
        if (!process) {
            one_of_many = true;
            // Processor time, so that a busy machine ends no run that works; its signal ends the process.
            const itimerval once = {{0, 0}, {milliseconds / 1000, milliseconds % 1000 * 1000}};
            setitimer(ITIMER_PROF, &once, nullptr);
            std::istringstream words(line);
            for (std::string word; words >> word;) {
                const size_t sign = word.find('=');
                setenv(word.substr(0, sign).c_str(), word.substr(sign + 1).c_str(), 1);
            }
            Harness harness(settings, in, traffic, out);
            harness.run();
            harness.finish();
            _exit(0);
        }
        int status = 0;
        const bool ended = waitpid(process, &status, 0) == process && status == 0;
        uint64_t count = progress->answered;
        if (progress->broken) count = std::min(count, uint64_t{progress->broken - 1});
        // It may answer all, and then break the handshake or crash.
        if ((!ended || progress->broken) && count == settings.count) --count;
        good += std::to_string(count) + "\n";
    }
    std::FILE* answers = open_answers();
    std::fputs(good.c_str(), answers);
    return std::fclose(answers) == 0 ? 0 : 2;
}

static size_t lines_of(const char* path) {
    std::ifstream file(path);
    size_t count = 0;
    for (std::string line; std::getline(file, line);) ++count;
    return count;
}

constexpr int kFiles = 6;  // words before the settings: the program and its files

int main(int argc, char** argv) {
    const bool many = argc == kFiles + kSettings + 2;
    if (argc != kFiles + kSettings && !many) return 2;
    uint64_t numbers[kSettings];
    for (int i = 0; i < kSettings; ++i) numbers[i] = std::strtoull(argv[kFiles + i], nullptr, 10);
    Settings settings;
    std::memcpy(&settings, numbers, sizeof settings);
    const void* in = map_file(argv[1], settings.count * settings.in_bytes, O_RDONLY);
    const void* between = map_file(argv[2], settings.count * sizeof(Between), O_RDONLY);
    const size_t runs = many ? lines_of(argv[kFiles + kSettings]) : 1;
    void* out = map_file(argv[3], runs * settings.count * settings.out_bytes, O_RDWR | O_CREAT);
    progress = static_cast<Progress*>(map_file(argv[4], sizeof(Progress), O_RDWR | O_CREAT));
    dup2(2, 1);  // what the DUT prints
    answers_path = argv[5];
    if (many)
        return run_many(settings, static_cast<const uint8_t*>(in), static_cast<const Between*>(between),
                        static_cast<uint8_t*>(out), argv[kFiles + kSettings],
                        std::strtol(argv[kFiles + kSettings + 1], nullptr, 10));
    Harness harness(settings, static_cast<const uint8_t*>(in), static_cast<const Between*>(between), static_cast<uint8_t*>(out));
    harness.run();
    harness.finish();
    std::FILE* answers = open_answers();
    harness.write(answers);
    const bool whole = !std::ferror(answers);
    return std::fclose(answers) == 0 && whole ? 0 : 2;
}
