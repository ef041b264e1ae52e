// Stands in for UVM's macros, as far as rtl_tb/templates/uvm uses them; see uvm_pkg.sv.
`ifndef UVM_MACROS_SVH
`define UVM_MACROS_SVH

`define uvm_object_utils(T) \
  typedef uvm_object_registry #(T) type_id;

`define uvm_component_utils(T) \
  typedef uvm_component_registry #(T) type_id; \
  static bit m_registered = uvm_component_registry#(T)::put(`"T`");

`define uvm_info(ID, MESSAGE, VERBOSITY) uvm_report(UVM_INFO, ID, MESSAGE);
`define uvm_warning(ID, MESSAGE) uvm_report(UVM_WARNING, ID, MESSAGE);
`define uvm_error(ID, MESSAGE) uvm_report(UVM_ERROR, ID, MESSAGE);
`define uvm_fatal(ID, MESSAGE) uvm_report(UVM_FATAL, ID, MESSAGE);

`define uvm_analysis_imp_decl(SUFFIX) \
  class uvm_analysis_imp``SUFFIX #(type T = int, type IMP = int) extends uvm_port_base #(T); \
    IMP m_imp; \
    function new(string name, IMP imp); m_imp = imp; endfunction \
    virtual function void write(T t); m_imp.write``SUFFIX(t); endfunction \
  endclass

`endif
