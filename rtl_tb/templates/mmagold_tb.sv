// @HEADER@
// Plain SystemVerilog, no Python and no DPI: Icarus Verilog 11, Verilator (--binary --timing), VCS, Questa, Xcelium.
//
// Reads from the working directory, or from the folder that +mmagold_files=FOLDER names
//   run.hex        the settings: number of vectors, resets, timeout (a comment names each)
//   vectors_N.hex  DEPTH vectors each, one a line: operand word, then expected result word
//   traffic_N.hex  four 32-bit words for each of them: the cycles before it, the cycles for which its result waits, what lies on the
//                  input meanwhile, the reset behind it (mmagold's rtl_tb/engines/traffic.py); nothing of it is decided here
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

    reg [31:0] settings[0:3];
    reg [IN_BITS+OUT_BITS-1:0] bank[0:2*DEPTH-1];  // the vectors loaded..loaded-2*DEPTH, vector i in entry i mod 2*DEPTH
    reg [127:0] plan[0:2*DEPTH-1];                 // their traffic
    reg [31:0] count, resets, timeout;
    reg [31:0] loaded, sent, answered, wrong, unknown, cycles, quiet;
    reg [31:0] resets_done, reset_left, tail_left, countdown, shown, next_event;
    reg [31:0] kept[0:5];
    reg [31:0] failed, last_clear, waited, reported, report_all, words[0:3], after;
    reg [31:0] gap_left, gap_limit, gap_expired, stall_left, stall_limit, stall_expired;
    reg gap_begun, gap_engaged, stall_begun, stall_engaged, drained;
    reg offering, stalled, fresh_reset, finished;
    reg [OUT_BITS-1:0] held, expected;
    reg [IN_BITS-1:0] operands;
    integer answers, i;
    string folder;

// @COMPARE@
    // The traffic of a vector, into `words`.
    task look_up(input [31:0] vector);
        {words[0], words[1], words[2], words[3]} = plan[vector % (2 * DEPTH)];
    endtask

    task begin_gap(input [31:0] wait_word);
        begin
            gap_begun = 1'b1;
            gap_left = wait_word % ENGAGED;
            gap_engaged = wait_word >= ENGAGED;
            gap_limit = LIMIT;
        end
    endtask

    // A cycle of the waits: an engaged wait counts only cycles in which the other side is ready, or valid, while it may.
    task pass_gap;
        if (gap_left != 0) begin
            if (!gap_engaged || in_ready === 1'b1 || gap_expired >= MOST_EXPIRED) gap_left = gap_left - 1;
            else begin
                gap_limit = gap_limit - 1;
                if (gap_limit == 0) begin
                    gap_left = 0;
                    gap_expired = gap_expired + 1;
                end
            end
        end
    endtask

    task pass_stall;
        if (stall_left != 0) begin
            if (!stall_engaged || out_valid === 1'b1 || stall_expired >= MOST_EXPIRED) stall_left = stall_left - 1;
            else begin
                stall_limit = stall_limit - 1;
                if (stall_limit == 0) begin
                    stall_left = 0;
                    stall_expired = stall_expired + 1;
                end
            end
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
            $readmemh($sformatf("%s/traffic_%0d.hex", folder, loaded / DEPTH), plan, first, first + length - 1);
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
            end else if (report_all != 0) begin
                reported = reported + 1;
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
                stall_begun = 1'b0;
                stall_left = 0;
                quiet = 0;
            end
        end
    endtask

    // What the pins show just before a rising edge.
    task observe;
        begin
            if (!in_valid && answered == sent) quiet = 0;
            else if (out_ready) quiet = quiet + 1;
            if (!in_valid) pass_gap;
            if (!out_ready) pass_stall;
            if (^{in_ready, out_valid} === 1'bx) record(X_ON_HANDSHAKE);
            if (stalled && out_valid !== 1'b1) record(DROPPED);
            else if (stalled && out_data !== held) record(UNSTABLE);
            if (in_valid && in_ready === 1'b1) begin
                sent = sent + 1;
                gap_begun = 1'b0;
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

    // Whether a reset is to come: each is armed once, when its vector was taken.
    task arm;
        begin
            while (countdown == 0 && resets_done != resets && next_event < sent) begin
                look_up(next_event);
                next_event = next_event + 1;
                countdown = words[3][7:0];
                drained = words[3][8];
                after = words[3][31:16];
            end
        end
    endtask

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
            stall_begun = 1'b0;
            stall_left = 0;
            begin_gap(after);
            resets_done = resets_done + 1;
        end
    endtask

    // Behind a reset, and when all is answered, what comes is too much, and is taken.
    task choose_ready;
        begin
            if (answered == count || (fresh_reset && !offering)) out_ready <= 1'b1;
            else begin
                if (!stall_begun) begin
                    look_up(answered);
                    stall_begun = 1'b1;
                    stall_left = words[1] % ENGAGED;
                    stall_engaged = words[1] >= ENGAGED;
                    stall_limit = LIMIT;
                end
                out_ready <= stall_left == 0;
            end
        end
    endtask

    task show_next;
        begin
            operands = bank[shown % loaded % (2 * DEPTH)][IN_BITS+OUT_BITS-1:OUT_BITS];
            shown = shown + 1;
        end
    endtask

    // What a unit takes in during a reset must not matter. Every other reset, the first among them, shows some vector's
    // complement: many operands are zero, and a unit that keeps a zero would look right.
    task show_other;
        begin
            show_next;
            in_data <= resets_done[0] ? operands : ~operands;
        end
    endtask

    // A vector once offered stays until it is taken, as the protocol demands of a source. An idle cycle, also one
    // after the last vector, carries some other vector, so that a DUT that ignores in_valid is noticed.
    task drive;
        begin
            if (sent == loaded && loaded != count && answered + DEPTH >= loaded) load_bank;
            if (!offering && sent != loaded) begin
                if (!gap_begun) begin
                    look_up(sent);
                    begin_gap(words[0]);
                    shown = words[2];
                end
                offering = gap_left == 0 && !(countdown != 0 && drained);
            end
            if (offering) operands = bank[sent % (2 * DEPTH)][IN_BITS+OUT_BITS-1:OUT_BITS];
            else show_next;
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
            $fdisplay(answers, "D %0d %0d %0d %0d %0d %0d %0d", cycles, answered, resets_done, reported, unknown, failed, waited);
            $fclose(answers);
            if (report_all == 0)
                $display("%0s: %0d of %0d vectors answered in %0d cycles, %0d wrong, %0d with X or Z, %0d handshake failures",
                         answered == count && wrong + unknown + failed == 0 ? "PASS" : "FAIL",
                         answered, count, cycles, wrong, unknown, failed);
            $finish;
        end
    endtask

    task advance;
        begin
            observe;
            arm;
            if (answered == count && countdown == 0) begin
                if (tail_left == 0) finish;
                tail_left = tail_left - 1;
            end else if (quiet > timeout) begin
                record(TIMEOUT);
                finish;
            end
            if (countdown != 0 && !(drained && (offering || answered != sent))) begin
                countdown = countdown - 1;
                if (countdown == 0) start_reset;
                else drive;
            end else drive;
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
        resets = settings[1];
        timeout = settings[2];
        report_all = settings[3];
        answers = $fopen({folder, "/answers.txt"}, "w");
        {loaded, sent, answered, wrong, unknown, cycles, quiet, failed} = 0;
        {resets_done, countdown, last_clear, shown, next_event, after, waited, reported} = 0;
        {gap_left, gap_limit, gap_expired, stall_left, stall_limit, stall_expired} = 0;
        {gap_begun, gap_engaged, stall_begun, stall_engaged, drained} = 0;
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
                arm;
                drive;
            end else advance;
            cycles = cycles + 1;
            if (cycles % BEAT == 0 && !finished) tell_progress;
        end
    end
endmodule
