// Functional coverage of operands and results, with the coverpoints of `mmagold rtl check --coverage`: the same names, bins and
// rules of what can be reached. A bin that cannot be reached is left out. +hits=FILE writes what was counted, whatever the
// simulator makes of covergroups.
{% for f in functions %}
function automatic int {{ f.name }}(bit [{{ f.width - 1 }}:0] code);
{% if f.shift %}
  code = code >> {{ f.shift }};
{% endif %}
{% if f.mask %}
  code = code & {{ f.width }}'h{{ "%x" % f.mask }};
{% endif %}
{% for upper, value in f.pieces[:-1] %}
  if (code <= {{ f.width }}'h{{ "%x" % upper }}) return {{ value }};
{% endfor %}
  return {{ f.pieces[-1][1] }};
endfunction

{% endfor %}
class {{ p }}_coverage extends uvm_subscriber #({{ p }}_dot_item);
  `uvm_component_utils({{ p }}_coverage)
  localparam int POINTS = {{ points|length }};
  localparam int BINS = {{ most_bins }};  // of the coverpoint that has most
  string names[POINTS];
  int sizes[POINTS];
  bit [BINS-1:0] reachable[POINTS];
  int unsigned hits[POINTS*BINS];
{% if state %}
  protected bit begun{% for name in controls %}, last_{{ name }}{% endfor %};
  protected int unsigned since;
  protected bit [{{ d.width - 1 }}:0] held;
{% endif %}

{% for point in points %}
  covergroup cg_{{ loop.index0 }} with function sample(int unsigned bin_number);
    option.per_instance = 1;
    option.comment = "{{ point.name }}";
    at: coverpoint bin_number {
{% for number, label in point.bins %}
      bins {{ label }} = {{ "{" }}{{ number }}{{ "}" }};
{% endfor %}
    }
  endgroup
{% endfor %}

  function new(string name, uvm_component parent);
    super.new(name, parent);
{% for point in points %}
    cg_{{ loop.index0 }} = new();
    names[{{ loop.index0 }}] = "{{ point.name }}";
    sizes[{{ loop.index0 }}] = {{ point.size }};
    reachable[{{ loop.index0 }}] = {{ most_bins }}'h{{ "%x" % point.mask }};
{% endfor %}
  endfunction

  protected function void hit(int point, int number);
    hits[point*BINS+number]++;
    case (point)
{% for point in points %}
      {{ loop.index0 }}: cg_{{ loop.index0 }}.sample(number);
{% endfor %}
      default: ;
    endcase
  endfunction

  virtual function void write({{ p }}_dot_item t);
{% for line in common %}
    {{ line }}
{% endfor %}
{% for unit in units %}
    {{ "if (t.mode == %s) "|format(unit.code) if unit.code is not none }}sample_{{ loop.index0 }}(t);
{% endfor %}
  endfunction

{% for unit in units %}
  protected function void sample_{{ loop.index0 }}({{ p }}_dot_item t);
{% for line in unit.lines %}
    {{ line }}
{% endfor %}
  endfunction

{% endfor %}
  // {bins hit, bins that can be reached}; a bin that was hit can be.
  function void count(output int unsigned reached, output int unsigned all);
    reached = 0;
    all = 0;
    for (int point = 0; point < POINTS; point++)
      for (int number = 0; number < sizes[point]; number++) begin
        if (hits[point*BINS+number] != 0) reached++;
        if (hits[point*BINS+number] != 0 || reachable[point][number]) all++;
      end
  endfunction

  virtual function void report_phase(uvm_phase phase);
    int unsigned reached, all;
    string file;
    super.report_phase(phase);
    count(reached, all);
    $display("mmagold coverage of operands and results: %0d of %0d bins", reached, all);
    if ($value$plusargs("hits=%s", file)) write_hits(file);
  endfunction

  // A line each: coverpoint, number of the bin, hits, separated by tabs.
  protected function void write_hits(string file);
    int fd = $fopen(file, "w");
    if (fd == 0) begin
      `uvm_error("HITS", {"cannot write ", file})
      return;
    end
    for (int point = 0; point < POINTS; point++)
      for (int number = 0; number < sizes[point]; number++)
        $fdisplay(fd, "%s\t%0d\t%0d", names[point], number, hits[point*BINS+number]);
    $fclose(fd);
  endfunction
endclass
