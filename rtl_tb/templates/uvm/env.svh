class {{ p }}_env extends uvm_env;
  `uvm_component_utils({{ p }}_env)
  {{ p }}_agent agent;
  {{ p }}_predictor predictor;
  {{ p }}_scoreboard scoreboard;
  {{ p }}_coverage coverage;

  function new(string name, uvm_component parent);
    super.new(name, parent);
  endfunction

  virtual function void build_phase(uvm_phase phase);
    super.build_phase(phase);
    agent = {{ p }}_agent::type_id::create("agent", this);
    predictor = {{ p }}_predictor::type_id::create("predictor", this);
    scoreboard = {{ p }}_scoreboard::type_id::create("scoreboard", this);
    coverage = {{ p }}_coverage::type_id::create("coverage", this);
  endfunction

  virtual function void connect_phase(uvm_phase phase);
    super.connect_phase(phase);
    if (agent.driver != null) agent.driver.sent.connect(predictor.sent);
    agent.monitor.inputs.connect(predictor.analysis_export);
    agent.monitor.outputs.connect(scoreboard.actual);
    predictor.predictions.connect(scoreboard.expected);
    predictor.dots.connect(coverage.analysis_export);
  endfunction
endclass

// Plays vectors.hex (+kind=KIND: the vectors of one kind), then +random=N operands of random bits.
class {{ p }}_test extends uvm_test;
  `uvm_component_utils({{ p }}_test)
  {{ p }}_env env;

  function new(string name, uvm_component parent);
    super.new(name, parent);
  endfunction

  virtual function void build_phase(uvm_phase phase);
    super.build_phase(phase);
    env = {{ p }}_env::type_id::create("env", this);
  endfunction

  virtual task run_phase(uvm_phase phase);
    {{ p }}_file_seq vectors = {{ p }}_file_seq::type_id::create("vectors");
    {{ p }}_random_seq random = {{ p }}_random_seq::type_id::create("random");
    phase.raise_objection(this);
    void'($value$plusargs("kind=%s", vectors.only_kind));
    void'($value$plusargs("random=%d", random.count));
    vectors.start(env.agent.sequencer);
    random.start(env.agent.sequencer);
    while (env.scoreboard.due() != 0) @(env.agent.monitor.vif.monitor_cb);
    env.agent.responder.hurry();
    repeat ({{ drain }}) @(env.agent.monitor.vif.monitor_cb);  // a result too many would come now
    if (env.agent.monitor.taken != vectors.played + random.count)
      `uvm_error("COUNT", $sformatf("%0d operands were sent, %0d taken", vectors.played + random.count, env.agent.monitor.taken))
    phase.drop_objection(this);
  endtask

  // The only line that says PASS: all results came, each was equal, and nobody complained.
  virtual function void report_phase(uvm_phase phase);
    uvm_report_server server = uvm_report_server::get_server();
    int complaints = server.get_severity_count(UVM_ERROR) + server.get_severity_count(UVM_FATAL);
    super.report_phase(phase);
    if (complaints == 0 && env.scoreboard.wrong == 0 && env.scoreboard.equal == env.agent.monitor.taken)
      $display("mmagold PASS: %0d results, all equal", env.scoreboard.equal);
    else $display("mmagold FAIL: %0d results equal, %0d wrong, %0d complaints", env.scoreboard.equal, env.scoreboard.wrong, complaints);
  endfunction
endclass
