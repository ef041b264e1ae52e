`uvm_analysis_imp_decl(_{{ p }}_sent)

// Asks the DPI-C model for the result of every transfer.{% if state %} It keeps the accumulator, which the model does not.{% endif %}

class {{ p }}_predictor extends uvm_subscriber #({{ p }}_item);
  `uvm_component_utils({{ p }}_predictor)
  uvm_analysis_port #({{ p }}_result) predictions;
  uvm_analysis_port #({{ p }}_dot_item) dots;
  uvm_analysis_imp_{{ p }}_sent #({{ p }}_item, {{ p }}_predictor) sent;
  protected {{ p }}_item items[$];  // what the driver was given, with what the vector file expects
{% if state %}
  bit known = {{ has_reset }};  // what the unit holds: +0 after a reset
  bit [{{ d.width - 1 }}:0] held;
{% endif %}

  function new(string name, uvm_component parent);
    super.new(name, parent);
    predictions = new("predictions", this);
    dots = new("dots", this);
    sent = new("sent", this);
  endfunction

  virtual function void write_{{ p }}_sent({{ p }}_item t);
    items.push_back(t);
  endfunction

  virtual function void write({{ p }}_item t);
    {{ p }}_result result = {{ p }}_result::type_id::create("result");
    result.item = t;
{% if state %}
    if (t.{{ controls|join(" || t.") }}) known = 1;
    if (!known) `uvm_fatal("STATE", "the unit has no reset: the first operands must come with {{ controls|join(" or ") }}")
{% endif %}
    for (int i = 0; i < {{ m }}; i++)
      for (int j = 0; j < {{ n }}; j++) begin
        {{ p }}_dot_item dot = dot_of(t, i, j);
{% for field in dot_results %}
        result.data[{{ result_lsb[field.name] }}+(i*{{ n }}+j)*{{ field.width }}+:{{ field.width }}] = dot.{{ field.name }};
{% endfor %}
{% if state %}
        held = dot.d;
{% endif %}
        dots.write(dot);
      end
    if (items.size() != 0) hold_against(items.pop_front(), result);
    predictions.write(result);
  endfunction

  // What was seen is what was sent, and the model says what the vector file says: neither is the unit's fault.
  protected function void hold_against({{ p }}_item item, {{ p }}_result result);
    if (item.word() != result.item.word()) `uvm_fatal("BENCH", "the monitor saw other operands than the driver was given")
    if (item.has_expected && item.expected !== result.data)
      `uvm_fatal("MODEL", $sformatf("the vector file expects %h, the model %h; %s", item.expected, result.data,
                                    item.convert2string()))
    result.item = item;
  endfunction

  // Row i of a against column j of b, with the result of the model.
  protected function {{ p }}_dot_item dot_of({{ p }}_item t, int i, int j);
    {{ p }}_dot_item dot = {{ p }}_dot_item::type_id::create("dot");
{% for line in gather %}
    {{ line }}
{% endfor %}
{% if state %}
{% for name in controls %}
    dot.{{ name }} = t.{{ name }};
{% endfor %}
    dot.c = t.clear ? '0 : {{ "t.load ? t.c : " if load }}held;
{% if no_products %}
    if ({{ no_products }}) begin  // products that come with it do not count
{% for name in factors %}
      dot.{{ name }} = '0;
{% endfor %}
    end
{% endif %}
{% endif %}
    {{ dot_results_word }} = {{ p }}_dot({{ dot_names }});
    return dot;
  endfunction
endclass
