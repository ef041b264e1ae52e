// Stands in for the UVM library in the tests, where none can be had: those of its classes that rtl_tb/templates/uvm uses, with the
// behaviour that the UVM class reference gives them and nothing beyond. It is no UVM, and not part of what mmagold generates.
package uvm_pkg;
  `include "uvm_macros.svh"

  typedef enum {UVM_INFO, UVM_WARNING, UVM_ERROR, UVM_FATAL} uvm_severity;
  typedef enum {UVM_PASSIVE, UVM_ACTIVE} uvm_active_passive_enum;

  class uvm_report_server;
    static uvm_report_server m_only;
    int m_count[4];
    static function uvm_report_server get_server();
      if (m_only == null) m_only = new();
      return m_only;
    endfunction
    function int get_severity_count(uvm_severity severity);
      return m_count[severity];
    endfunction
  endclass

  function automatic void uvm_report(uvm_severity severity, string id, string message);
    uvm_report_server server = uvm_report_server::get_server();
    server.m_count[severity]++;
    $display("%s @ %0t: [%s] %s", severity.name(), $time, id, message);
    if (severity == UVM_FATAL) $finish;
  endfunction

  class uvm_object;
    string m_name;
    function new(string name = "");
      m_name = name;
    endfunction
    virtual function string get_name();
      return m_name;
    endfunction
    virtual function string convert2string();
      return "";
    endfunction
  endclass

  class uvm_object_registry #(type T = int);
    static function T create(string name = "");
      T made = new(name);
      return made;
    endfunction
  endclass

  typedef class uvm_component;

  class uvm_phase extends uvm_object;
    int m_raised;
    semaphore m_over = new(0);
    function new(string name = "");
      super.new(name);
    endfunction
    function void raise_objection(uvm_object who);
      m_raised++;
    endfunction
    function void drop_objection(uvm_object who);
      m_raised--;
      if (m_raised == 0) m_over.put(1);
    endfunction
  endclass

  class uvm_component extends uvm_object;
    uvm_component m_children[$];
    function new(string name, uvm_component parent);
      super.new(name);
      if (parent != null) parent.m_children.push_back(this);
    endfunction
    virtual function void build_phase(uvm_phase phase);
    endfunction
    virtual function void connect_phase(uvm_phase phase);
    endfunction
    virtual task run_phase(uvm_phase phase);
    endtask
    virtual function void check_phase(uvm_phase phase);
    endfunction
    virtual function void report_phase(uvm_phase phase);
    endfunction
    function void m_build(uvm_phase phase);
      build_phase(phase);
      foreach (m_children[i]) m_children[i].m_build(phase);
    endfunction
    function void m_connect(uvm_phase phase);
      foreach (m_children[i]) m_children[i].m_connect(phase);
      connect_phase(phase);
    endfunction
    task m_start(uvm_phase phase);
      foreach (m_children[i]) m_children[i].m_start(phase);
      fork
        run_phase(phase);
      join_none
    endtask
    function void m_check(uvm_phase phase);
      foreach (m_children[i]) m_children[i].m_check(phase);
      check_phase(phase);
    endfunction
    function void m_report(uvm_phase phase);
      foreach (m_children[i]) m_children[i].m_report(phase);
      report_phase(phase);
    endfunction
  endclass

  // Makes a component by its name, for run_test.
  virtual class uvm_maker;
    static uvm_maker m_all[string];
    pure virtual function uvm_component make(string name);
  endclass

  class uvm_component_registry #(type T = int) extends uvm_maker;
    static function T create(string name, uvm_component parent);
      T made = new(name, parent);
      return made;
    endfunction
    virtual function uvm_component make(string name);
      T made = new(name, null);
      return made;
    endfunction
    static function bit put(string name);
      uvm_component_registry #(T) own = new();
      m_all[name] = own;
      return 1;
    endfunction
  endclass

  class uvm_config_db #(type T = int);
    static T m_values[string];
    static function void set(uvm_component from, string path, string name, T value);
      m_values[name] = value;
    endfunction
    static function bit get(uvm_component from, string path, string name, inout T value);
      if (m_values.exists(name) == 0) return 0;
      value = m_values[name];
      return 1;
    endfunction
  endclass

  virtual class uvm_port_base #(type T = int);
    pure virtual function void write(T t);
  endclass

  class uvm_analysis_port #(type T = int) extends uvm_port_base #(T);
    uvm_port_base #(T) m_ends[$];
    function new(string name, uvm_component parent);
    endfunction
    function void connect(uvm_port_base #(T) other);
      m_ends.push_back(other);
    endfunction
    virtual function void write(T t);
      foreach (m_ends[i]) m_ends[i].write(t);
    endfunction
  endclass

  `uvm_analysis_imp_decl()

  virtual class uvm_subscriber #(type T = int) extends uvm_component;
    typedef uvm_subscriber #(T) this_type;
    uvm_analysis_imp #(T, this_type) analysis_export;
    function new(string name, uvm_component parent);
      super.new(name, parent);
      analysis_export = new("analysis_export", this);
    endfunction
    pure virtual function void write(T t);
  endclass

  class uvm_sequence_item extends uvm_object;
    function new(string name = "");
      super.new(name);
    endfunction
  endclass

  class uvm_sequencer #(type REQ = int) extends uvm_component;
    typedef uvm_component_registry #(uvm_sequencer #(REQ)) type_id;
    semaphore m_turn = new(1);
    mailbox #(REQ) m_items = new(1);
    mailbox #(bit) m_done = new(1);
    uvm_sequencer #(REQ) seq_item_export;
    function new(string name, uvm_component parent);
      super.new(name, parent);
      seq_item_export = this;
    endfunction
  endclass

  class uvm_seq_item_pull_port #(type REQ = int);
    uvm_sequencer #(REQ) m_sequencer;
    function void connect(uvm_sequencer #(REQ) other);
      m_sequencer = other;
    endfunction
    task get_next_item(output REQ item);
      m_sequencer.m_items.get(item);
    endtask
    task item_done();
      m_sequencer.m_done.put(1'b1);
    endtask
  endclass

  class uvm_driver #(type REQ = int) extends uvm_component;
    uvm_seq_item_pull_port #(REQ) seq_item_port;
    REQ req;
    function new(string name, uvm_component parent);
      super.new(name, parent);
      seq_item_port = new();
    endfunction
  endclass

  class uvm_sequence #(type REQ = int) extends uvm_sequence_item;
    uvm_sequencer #(REQ) m_sequencer;
    function new(string name = "");
      super.new(name);
    endfunction
    virtual task body();
    endtask
    task start(uvm_sequencer #(REQ) sequencer);
      m_sequencer = sequencer;
      body();
    endtask
    task start_item(REQ item);
      m_sequencer.m_turn.get(1);
    endtask
    task finish_item(REQ item);
      bit done;
      m_sequencer.m_items.put(item);
      m_sequencer.m_done.get(done);
      m_sequencer.m_turn.put(1);
    endtask
  endclass

  class uvm_monitor extends uvm_component;
    function new(string name, uvm_component parent);
      super.new(name, parent);
    endfunction
  endclass

  class uvm_scoreboard extends uvm_component;
    function new(string name, uvm_component parent);
      super.new(name, parent);
    endfunction
  endclass

  class uvm_agent extends uvm_component;
    function new(string name, uvm_component parent);
      super.new(name, parent);
    endfunction
    virtual function uvm_active_passive_enum get_is_active();
      return UVM_ACTIVE;
    endfunction
  endclass

  class uvm_env extends uvm_component;
    function new(string name, uvm_component parent);
      super.new(name, parent);
    endfunction
  endclass

  class uvm_test extends uvm_component;
    function new(string name, uvm_component parent);
      super.new(name, parent);
    endfunction
  endclass

  task automatic run_test(string name = "");
    string asked;
    uvm_component test;
    uvm_phase phase = new("run");
    uvm_report_server server = uvm_report_server::get_server();
    if ($value$plusargs("UVM_TESTNAME=%s", asked)) name = asked;
    if (uvm_maker::m_all.exists(name) == 0) $fatal(1, "no test %s", name);
    test = uvm_maker::m_all[name].make("uvm_test_top");
    test.m_build(phase);
    test.m_connect(phase);
    test.m_start(phase);
    phase.m_over.get(1);
    test.m_check(phase);
    test.m_report(phase);
    for (int i = 0; i < 4; i++) begin
      uvm_severity severity = uvm_severity'(i);
      $display("%s :%5d", severity.name(), server.m_count[i]);
    end
    $finish;
  endtask
endpackage
