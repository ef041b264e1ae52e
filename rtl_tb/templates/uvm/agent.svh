typedef uvm_sequencer #({{ p }}_item) {{ p }}_sequencer;

// The waits of one side of the handshake, transaction by transaction, from traffic.hex: before operands are offered (column 0), and
// before their result is taken (column 1). A wait that is engaged counts the cycles alone in which the other side is ready, or
// valid; one for which that never comes ends.
class {{ p }}_waits;
  int unsigned percent = 100, left;  // percent of the waits that are kept; left: cycles that this one still has
  protected int unsigned words[$], at, limit, expired;
  protected bit engaged;

  function void load(int column);
    int unsigned pair[2];
    int fd = $fopen("traffic.hex", "r");
    if (fd == 0) begin
      `uvm_fatal("TRAFFIC", "cannot read traffic.hex")
      return;
    end
    while ($fscanf(fd, "%h %h", pair[0], pair[1]) == 2) words.push_back(pair[column]);
    $fclose(fd);
    if (words.size() == 0) `uvm_fatal("TRAFFIC", "traffic.hex holds no traffic")
  endfunction

  // Begins the wait of the next transaction.
  function void next();
    int unsigned word = words[at % words.size()];
    at++;
    if ($urandom_range(99) >= percent) word = 0;
    left = word % {{ engaged }};
    engaged = word >= {{ engaged }};
    limit = {{ limit }};
  endfunction

  // A cycle has passed; met: in which the other side was ready, or valid.
  function void pass(bit met);
    if (left == 0) return;
    if (!engaged || met || expired >= {{ most_expired }}) left--;
    else begin
      limit--;
      if (limit == 0) begin
        left = 0;
        expired++;
      end
    end
  endfunction
endclass

// Offers operands: in_valid stays high, and in_data as it is, until in_ready takes them. Before some of them
// it waits, as traffic.hex says; +idle=PERCENT of these waits are kept.
class {{ p }}_driver extends uvm_driver #({{ p }}_item);
  `uvm_component_utils({{ p }}_driver)
  virtual {{ p }}_if vif;
  uvm_analysis_port #({{ p }}_item) sent;
  {{ p }}_waits waits;

  function new(string name, uvm_component parent);
    super.new(name, parent);
    sent = new("sent", this);
    waits = new();
  endfunction

  virtual function void build_phase(uvm_phase phase);
    super.build_phase(phase);
    if (!uvm_config_db#(virtual {{ p }}_if)::get(this, "", "vif", vif)) `uvm_fatal("VIF", "no virtual interface 'vif'")
    void'($value$plusargs("idle=%d", waits.percent));
    if (waits.percent > 100) `uvm_fatal("IDLE", "+idle is a percentage from 0 to 100")
    waits.load(0);
  endfunction

  virtual task run_phase(uvm_phase phase);
    vif.driver_cb.in_valid <= 1'b0;
    do @(vif.driver_cb); while (vif.rst_n !== 1'b1);
    forever begin
      seq_item_port.get_next_item(req);
      sent.write(req);
      waits.next();
      while (waits.left != 0) begin
        quiet();
        waits.pass(vif.driver_cb.in_ready === 1'b1);
      end
      vif.driver_cb.in_valid <= 1'b1;
      vif.driver_cb.in_data <= req.word();
      do @(vif.driver_cb); while (vif.driver_cb.in_ready !== 1'b1);
      vif.driver_cb.in_valid <= 1'b0;
      vif.driver_cb.in_data <= 'x;
      seq_item_port.item_done();
    end
  endtask

  protected task quiet();
    vif.driver_cb.in_valid <= 1'b0;
    vif.driver_cb.in_data <= 'x;  // what nothing offers nothing may depend on
    @(vif.driver_cb);
  endtask
endclass

// Takes results; {% if stalls %}some wait, as traffic.hex says; +backpressure=PERCENT of these waits are kept.{% else %}always: the unit cannot wait.{% endif %}

class {{ p }}_responder extends uvm_component;
  `uvm_component_utils({{ p }}_responder)
  virtual {{ p }}_if vif;
  {{ p }}_waits waits;

  function new(string name, uvm_component parent);
    super.new(name, parent);
    waits = new();
{% if not stalls %}
    waits.percent = 0;
{% endif %}
  endfunction

  virtual function void build_phase(uvm_phase phase);
    super.build_phase(phase);
    if (!uvm_config_db#(virtual {{ p }}_if)::get(this, "", "vif", vif)) `uvm_fatal("VIF", "no virtual interface 'vif'")
{% if stalls %}
    void'($value$plusargs("backpressure=%d", waits.percent));
    if (waits.percent > 100) `uvm_fatal("BACKPRESSURE", "+backpressure is a percentage from 0 to 100")
{% endif %}
    waits.load(1);
  endfunction

  virtual task run_phase(uvm_phase phase);
    bit ready;
    waits.next();
    forever begin
      ready = waits.left == 0;
      vif.driver_cb.out_ready <= ready;
      @(vif.driver_cb);
      if (!ready) waits.pass(vif.driver_cb.out_valid === 1'b1);
      else if (vif.driver_cb.out_valid === 1'b1) waits.next();
    end
  endtask

  // From now on every cycle takes a result.
  function void hurry();
    waits.percent = 0;
    waits.left = 0;
  endfunction
endclass

// Sees transfers on both sides and holds the unit to the handshake; +timeout=CYCLES that could take a
// result, without a transfer while one is due, end the test.
class {{ p }}_monitor extends uvm_monitor;
  `uvm_component_utils({{ p }}_monitor)
  virtual {{ p }}_if vif;
  uvm_analysis_port #({{ p }}_item) inputs;
  uvm_analysis_port #({{ p }}_result) outputs;
  int unsigned taken, answered, quiet, timeout = 10_000;
  protected bit waiting;
  protected logic [OUT_BITS-1:0] waiting_data;

  function new(string name, uvm_component parent);
    super.new(name, parent);
    inputs = new("inputs", this);
    outputs = new("outputs", this);
  endfunction

  virtual function void build_phase(uvm_phase phase);
    super.build_phase(phase);
    if (!uvm_config_db#(virtual {{ p }}_if)::get(this, "", "vif", vif)) `uvm_fatal("VIF", "no virtual interface 'vif'")
    void'($value$plusargs("timeout=%d", timeout));
  endfunction

  virtual task run_phase(uvm_phase phase);
    forever begin
      @(vif.monitor_cb);
      if (vif.rst_n === 1'b1) begin
        if (taken == answered && vif.monitor_cb.in_valid !== 1'b1) quiet = 0;
        else if (vif.monitor_cb.out_ready === 1'b1) quiet++;
        see_input();
        see_output();
        if (quiet > timeout)
          `uvm_fatal("TIMEOUT", $sformatf("no transfer in %0d cycles; %0d operands taken, %0d results", timeout, taken, answered))
      end
    end
  endtask

  protected function void see_input();
    if ($isunknown(vif.monitor_cb.in_ready)) `uvm_error("HANDSHAKE", "in_ready is X or Z")
    if (vif.monitor_cb.in_valid === 1'b1 && vif.monitor_cb.in_ready === 1'b1) begin
      {{ p }}_item item = {{ p }}_item::type_id::create("item");
      item.set_word(vif.monitor_cb.in_data);
      taken++;
      quiet = 0;
      inputs.write(item);
    end
  endfunction

  protected function void see_output();
    logic valid = vif.monitor_cb.out_valid;
    if ($isunknown(valid)) `uvm_error("HANDSHAKE", "out_valid is X or Z")
    if (waiting && valid !== 1'b1) `uvm_error("HANDSHAKE", "out_valid fell before out_ready took the result")
    if (waiting && valid === 1'b1 && vif.monitor_cb.out_data !== waiting_data)
      `uvm_error("HANDSHAKE", "out_data changed while out_valid waited for out_ready")
    waiting = {{ "valid === 1'b1 && vif.monitor_cb.out_ready !== 1'b1" if holds else "1'b0" }};
    waiting_data = vif.monitor_cb.out_data;
    if (valid === 1'b1 && vif.monitor_cb.out_ready === 1'b1) begin
      {{ p }}_result result = {{ p }}_result::type_id::create("result");
      result.data = vif.monitor_cb.out_data;
      answered++;
      quiet = 0;
      outputs.write(result);
    end
  endfunction
endclass

class {{ p }}_agent extends uvm_agent;
  `uvm_component_utils({{ p }}_agent)
  {{ p }}_sequencer sequencer;
  {{ p }}_driver driver;
  {{ p }}_responder responder;
  {{ p }}_monitor monitor;

  function new(string name, uvm_component parent);
    super.new(name, parent);
  endfunction

  virtual function void build_phase(uvm_phase phase);
    super.build_phase(phase);
    monitor = {{ p }}_monitor::type_id::create("monitor", this);
    if (get_is_active() == UVM_ACTIVE) begin
      sequencer = {{ p }}_sequencer::type_id::create("sequencer", this);
      driver = {{ p }}_driver::type_id::create("driver", this);
      responder = {{ p }}_responder::type_id::create("responder", this);
    end
  endfunction

  virtual function void connect_phase(uvm_phase phase);
    super.connect_phase(phase);
    if (get_is_active() == UVM_ACTIVE) begin
      driver.seq_item_port.connect(sequencer.seq_item_export);
    end
  endfunction
endclass
