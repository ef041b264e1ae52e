`uvm_analysis_imp_decl(_{{ p }}_expected)
`uvm_analysis_imp_decl(_{{ p }}_actual)

// Compares results with predictions, in order and bit for bit but for what the compare policy allows.
class {{ p }}_scoreboard extends uvm_scoreboard;
  `uvm_component_utils({{ p }}_scoreboard)
  uvm_analysis_imp_{{ p }}_expected #({{ p }}_result, {{ p }}_scoreboard) expected;
  uvm_analysis_imp_{{ p }}_actual #({{ p }}_result, {{ p }}_scoreboard) actual;
  int unsigned shown = 10;           // mismatches that are printed
  int unsigned equal, wrong, extra, disagreed;
  protected {{ p }}_result queue[$];

  function new(string name, uvm_component parent);
    super.new(name, parent);
    expected = new("expected", this);
    actual = new("actual", this);
  endfunction

  function int unsigned due();
    return queue.size();
  endfunction

  virtual function void write_{{ p }}_expected({{ p }}_result t);
    queue.push_back(t);
  endfunction

  virtual function void write_{{ p }}_actual({{ p }}_result t);
    {{ p }}_result wanted;
    if (queue.size() == 0) begin
      extra++;
      `uvm_error("EXTRA", $sformatf("result %h, which no operands asked for", t.data))
      return;
    end
    wanted = queue.pop_front();
    if (!$isunknown(t.data) && accepted(wanted.data, t.data)) begin
      equal++;
      return;
    end
    wrong++;
    if (wrong <= shown)
      `uvm_error("MISMATCH", $sformatf("result %0d is %h, expected %h; %s", equal + wrong - 1, t.data, wanted.data,
                                       wanted.item.convert2string()))
  endfunction

  virtual function void check_phase(uvm_phase phase);
    super.check_phase(phase);
    if (queue.size() != 0) `uvm_error("MISSING", $sformatf("%0d results never came", queue.size()))
    if (equal == 0) `uvm_error("NOTHING", "no result was found equal")
    if (wrong > shown) `uvm_error("MISMATCH", $sformatf("%0d results differ, %0d are shown", wrong, shown))
  endfunction
endclass
