// @HEADER@
// Plain SystemVerilog, no Python and no DPI: Icarus Verilog 11, Verilator (--binary --timing), VCS, Questa, Xcelium.
//
// Reads from the working directory, or from the folder that +mmagold_files=FOLDER names
//   run.hex        the settings: number of vectors, probabilities, resets, seed, timeout (a comment names each)
//   vectors_N.hex  DEPTH vectors each, one a line: operand word, then expected result word
// Writes answers.txt: one line for each wrong or unknown result and each failure of the handshake, a summary at the end. Where
// the settings say so, one for every result and none is compared: what a simulation does not hold, no unit in it can read.
// +waves=FILE writes a waveform.
//
// Results come in the order of the vectors, so what is in flight is the range answered..sent. A reset loses it: `sent` goes
// back to `answered` and the vectors are sent again. It also clears the state of a unit that has one (STATE): both then go back
// to the last vector with `clear` (bit 0 of its word), which is sent without it, since after a reset the state is zero; every
// result is compared each time it comes.
`timescale 1ns / 1ps
module mmagold_tb;
// @PARAMETERS@
    localparam integer TAIL = 256;      // cycles after the last result in which an extra one is noticed
    localparam integer DRAIN = 320;     // idle cycles after every other reset: results from before it, units that fall asleep
    localparam integer PAUSE = 256;     // cycles after which a source that waits for a ready unit to see it idle gives up
    localparam integer AWAKE = 2;       // cycles that a pause lasts from when the unit is ready
    localparam integer ASLEEP = 64;     // and one of sixteen: a unit that falls asleep must keep its state
    localparam integer FIRST_LONG = 64; // the 64th cycle of waiting, and the 128th, the 256th ..., lasts
    localparam integer LONG = 300;      // so many more: more than an 8-bit counter counts
    localparam integer SLOW = 16;       // a long wait of the source: one cycle in so many takes, so that the last result, too, waits
    localparam integer PER_KIND = 16;   // failures of one kind that are written
    localparam integer PRINTED = 10;    // wrong results that are printed
    localparam integer BEAT = 64;       // cycles between two signs of life in answers.txt

    // The numbers of the kinds, as rtl_tb/engines/common.py reads them.
    localparam integer TIMEOUT = 0, EXTRA = 1, UNSTABLE = 2, DROPPED = 3, STALE = 4, X_ON_HANDSHAKE = 5;

    reg clk, rst_n, in_valid, out_ready;
    reg [IN_BITS-1:0] in_data;
    wire pin_in_ready, pin_out_valid;
    wire [OUT_BITS-1:0] pin_out_data;
    reg in_ready, out_valid;  // the pins, sampled 1 ps before the edge: at the edge the DUT may already have changed them
    reg [OUT_BITS-1:0] out_data;

    mmagold_dut dut (
        .clk(clk), .rst_n(rst_n), .in_valid(in_valid), .in_ready(pin_in_ready), .in_data(in_data),
        .out_valid(pin_out_valid), .out_ready(out_ready), .out_data(pin_out_data)
    );

    reg [31:0] settings[0:6];
    reg [IN_BITS+OUT_BITS-1:0] bank[0:2*DEPTH-1];  // the vectors loaded..loaded-2*DEPTH, vector i in entry i mod 2*DEPTH
    reg [31:0] count, idle, backpressure, resets, timeout, random;
    reg [31:0] loaded, sent, answered, wrong, unknown, cycles, quiet;
    reg [31:0] resets_done, reset_left, drain_left, tail_left, countdown;
    reg [31:0] kept[0:5];
    reg [31:0] failed, chosen, last_clear, pause_left, pause_ready;
    reg [31:0] idled, next_idle, idle_left, stalls, next_stall, stall_left, waited, told, tell_all;
    reg offering, stalled, fresh_reset, finished;
    reg [OUT_BITS-1:0] held, expected;
    reg [IN_BITS-1:0] operands;
    integer answers, i;
    string folder;

// @COMPARE@
    // One step of a 32-bit xorshift generator: the same traffic in every simulator.
    task step_random;
        begin
            random = random ^ (random << 13);
            random = random ^ (random >> 17);
            random = random ^ (random << 5);
        end
    endtask

    task tell_progress;
        begin
            $fdisplay(answers, "P %0d %0d", answered, cycles);
            $fflush(answers);
        end
    endtask

    task load_bank;
        reg [31:0] first, length;
        begin
            first = loaded % (2 * DEPTH);
            length = count - loaded < DEPTH ? count - loaded : DEPTH;
            $readmemh($sformatf("%s/vectors_%0d.hex", folder, loaded / DEPTH), bank, first, first + length - 1);
            loaded = loaded + length;
            tell_progress;
        end
    endtask

    task record(input integer kind);
        begin
            kept[kind] = kept[kind] + 1;
            if (kept[kind] <= PER_KIND) begin
                failed = failed + 1;
                $fdisplay(answers, "F %0d %0d %0d %b%b%b%b %0d", kind, cycles, answered,
                          in_valid, in_ready, out_valid, out_ready, sent - answered);
            end
        end
    endtask

    task check_result;
        begin
            {operands, expected} = bank[answered % (2 * DEPTH)];
            if (operands[0]) last_clear = answered;
            if (^out_data === 1'bx) begin
                unknown = unknown + 1;
                $fdisplay(answers, "X %0d %b", answered, out_data);
            end else if (tell_all != 0) begin
                told = told + 1;
                $fdisplay(answers, "R %0d %h", answered, out_data);
            end else if (!accepted(expected, out_data)) begin
                wrong = wrong + 1;
                $fdisplay(answers, "M %0d %h", answered, out_data);
                if (wrong <= PRINTED)
                    $display("WRONG vector %0d: operands %h expected %h got %h", answered, operands, expected, out_data);
            end
        end
    endtask

    task take_result;
        begin
            if (answered == sent) record(fresh_reset ? STALE : EXTRA);
            else begin
                check_result;
                answered = answered + 1;
                quiet = 0;
            end
        end
    endtask

    // What the pins show just before a rising edge.
    task observe;
        begin
            quiet = stall_left != 0 || slow(0) || ((pause_left != 0 || idle_left != 0) && answered == sent) ? 0 : quiet + 1;
            if (pause_left != 0 && in_ready === 1'b1) begin
                pause_ready = pause_ready - 1;
                if (pause_ready == 0) pause_left = 0;
            end
            if (^{in_ready, out_valid} === 1'bx) record(X_ON_HANDSHAKE);
            if (stalled && out_valid !== 1'b1) record(DROPPED);
            else if (stalled && out_data !== held) record(UNSTABLE);
            if (in_valid && in_ready === 1'b1) begin
                sent = sent + 1;
                offering = 1'b0;
                fresh_reset = 1'b0;
                quiet = 0;
            end
            if (out_valid === 1'b1 && out_ready) take_result;
            stalled = out_valid === 1'b1 && !out_ready;
            if (stalled) waited = waited + 1;
            held = out_data;
        end
    endtask

    // Reset number r comes 1 to 8 cycles after vector r / (resets + 1) of the run was taken.
    function reset_due(input integer unused);
        reset_due = resets_done != resets && {32'd0, sent} * (resets + 1) >= (64'd1 + resets_done) * count;
    endfunction

    // Random waits of the sink hardly meet a pipeline that has run empty behind the result that waits.
    function slow(input integer unused);
        slow = backpressure != 0 && pause_left == 0 && idle_left % SLOW != 0;
    endfunction

    // Where the vectors begin that have to be sent again; it may lie before those that are loaded.
    task go_back;
        begin
            if (STATE != 0 && answered != count && !(answered < loaded && bank[answered % (2 * DEPTH)][OUT_BITS])) begin
                answered = last_clear;
                if ((loaded + DEPTH - 1) / DEPTH > answered / DEPTH + 2) begin
                    loaded = answered / DEPTH * DEPTH;
                    load_bank;
                end
            end
            sent = answered;
        end
    endtask

    task start_reset;
        begin
            rst_n <= 1'b0;
            in_valid <= 1'b0;
            out_ready <= 1'b0;
            go_back;
            offering = 1'b0;
            stalled = 1'b0;
            fresh_reset = 1'b1;
            quiet = 0;
            reset_left = RESET_CYCLES;
            drain_left = resets_done[0] ? 0 : DRAIN;
            resets_done = resets_done + 1;
        end
    endtask

    // A unit that is slower than its source would hardly be ready and idle at once: where it keeps a state that it could lose
    // then, some pauses last until it has been ready for some cycles.
    task choose_offering;
        begin
            if (pause_left != 0) pause_left = pause_left - 1;
            else if (idle_left != 0) idle_left = idle_left - 1;
            else begin
                step_random;
                offering = idle == 0 || random >= idle;
                if (!offering) begin
                    idled = idled + 1;
                    if (idled == next_idle) begin
                        idle_left = LONG;
                        next_idle = 2 * next_idle;
                    end
                end
                if (STATE != 0 && !offering) begin
                    step_random;
                    if (random[1:0] == 0) begin
                        pause_left = PAUSE;
                        pause_ready = random[5:2] == 0 ? ASLEEP : AWAKE;
                    end
                end
            end
        end
    endtask

    // Single cycles of waiting at random never show what a unit does in a long wait: a few of them last.
    task choose_ready;
        begin
            step_random;
            if (backpressure == 0 || answered == count || drain_left != 0) out_ready <= 1'b1;
            else if (stall_left != 0) begin
                stall_left = stall_left - 1;
                out_ready <= 1'b0;
            end else if (slow(0)) out_ready <= 1'b0;
            else begin
                out_ready <= random >= backpressure;
                if (random < backpressure) stalls = stalls + 1;
                if (stalls == next_stall) begin
                    stall_left = LONG;
                    next_stall = 2 * next_stall;
                end
            end
        end
    endtask

    // What a unit takes in during a reset must not matter. Every other reset, the first among them, shows some vector's
    // complement: many operands are zero, and what keeps one of those would look right.
    task show_other;
        begin
            step_random;
            operands = bank[random % loaded % (2 * DEPTH)][IN_BITS+OUT_BITS-1:OUT_BITS];
            in_data <= resets_done[0] ? operands : ~operands;
        end
    endtask

    // A vector once offered stays until it is taken, as the protocol demands of a source. An idle cycle, also one
    // after the last vector, carries some other vector, so that a DUT that ignores in_valid is noticed.
    task drive;
        begin
            if (sent == loaded && loaded != count && answered + DEPTH >= loaded) load_bank;
            if (drain_left != 0) begin
                drain_left = drain_left - 1;
                quiet = 0;
            end else if (!offering && sent != loaded) begin
                choose_offering;
            end
            if (!offering) step_random;
            chosen = (offering ? sent : random % loaded) % (2 * DEPTH);
            operands = bank[chosen][IN_BITS+OUT_BITS-1:OUT_BITS];
            if (STATE == 1 && offering && fresh_reset) operands[0] = 1'b0;
            if (STATE == 2 && offering && fresh_reset) operands = 0; // what clears alone has no products
            in_data <= operands;
            in_valid <= offering;
            choose_ready;
        end
    endtask

    task finish;
        begin
            finished = 1'b1;
            $fdisplay(answers, "D %0d %0d %0d %0d %0d %0d %0d", cycles, answered, resets_done, told, unknown, failed, waited);
            $fclose(answers);
            if (tell_all == 0)
                $display("%0s: %0d of %0d vectors answered in %0d cycles, %0d wrong, %0d with X or Z, %0d handshake failures",
                         answered == count && wrong + unknown + failed == 0 ? "PASS" : "FAIL",
                         answered, count, cycles, wrong, unknown, failed);
            $finish;
        end
    endtask

    task advance;
        begin
            observe;
            if (answered == count) begin
                if (tail_left == 0) finish;
                tail_left = tail_left - 1;
            end else if (quiet > timeout) begin
                record(TIMEOUT);
                finish;
            end
            if (countdown == 0 && answered != count && reset_due(0)) begin
                step_random;
                countdown = random[2:0] + 1;
            end
            if (countdown == 1) start_reset;
            else drive;
            if (countdown != 0) countdown = countdown - 1;
        end
    endtask

    reg [8*1024-1:0] waves;

    initial begin
        if ($value$plusargs("waves=%s", waves)) begin
            $dumpfile(waves);
            $dumpvars(0, mmagold_tb);
        end
        if (!$value$plusargs("mmagold_files=%s", folder)) folder = ".";
        $readmemh({folder, "/run.hex"}, settings);
        count = settings[0];
        idle = settings[1];
        backpressure = settings[2];
        resets = settings[3];
        random = settings[4] == 0 ? 32'h9e3779b9 : settings[4];
        timeout = settings[5];
        tell_all = settings[6];
        answers = $fopen({folder, "/answers.txt"}, "w");
        {loaded, sent, answered, wrong, unknown, cycles, quiet, failed} = 0;
        {resets_done, drain_left, countdown, last_clear, pause_left, pause_ready} = 0;
        {idled, idle_left, stalls, stall_left, waited, told} = 0;
        {next_idle, next_stall} = {2{FIRST_LONG}};
        {offering, stalled, fresh_reset, finished} = 0;
        for (i = 0; i < 6; i = i + 1) kept[i] = 0;
        reset_left = RESET_CYCLES;
        tail_left = TAIL;
        {clk, rst_n, in_valid, out_ready} = 0;
        if (count != 0) load_bank;
        in_data = bank[0][IN_BITS+OUT_BITS-1:OUT_BITS];
        forever begin
            #4.999 in_ready = pin_in_ready;
            out_valid = pin_out_valid;
            out_data = pin_out_data;
            #0.001 clk = 1'b1;
            #5 clk = 1'b0;
        end
    end

    always @(posedge clk) begin
        if (!finished) begin
            if (reset_left > 1) begin
                reset_left = reset_left - 1;
                show_other;
            end else if (reset_left == 1) begin
                reset_left = 0;
                rst_n <= 1'b1;
                drive;
            end else advance;
            cycles = cycles + 1;
            if (cycles % BEAT == 0 && !finished) tell_progress;
        end
    end
endmodule
