// What the unit takes in one transfer{{ " (a tile: matrices row by row)" if tile }}, and what it answers. Element 0 lies in the least significant bits.
class {{ p }}_item extends uvm_sequence_item;
  `uvm_object_utils({{ p }}_item)

{% for field in inputs %}
  rand bit [{{ field.width - 1 }}:0] {{ field.name }};  // {{ field.elements }} x {{ field.bits }} bits
{% endfor %}
  string kind = "random";  // of the stimulus
  bit has_expected;        // whether the vector file says what the result is; the predictor has to agree
  bit [OUT_BITS-1:0] expected;

  function new(string name = "{{ p }}_item");
    super.new(name);
  endfunction

  function bit [IN_BITS-1:0] word();
    return {% raw %}{{% endraw %}{{ names }}};
  endfunction

  function void set_word(bit [IN_BITS-1:0] value);
    {% raw %}{{% endraw %}{{ names }}} = value;
  endfunction
{% if mode_codes or nibbles or load %}

  // Codes that the unit does not have are replaced by codes that it has{{ "; one of clear and load is set at a time" if load }}.
  function void post_randomize();
{% if load %}
    load = load && !clear;
{% endif %}
{% if mode_codes %}
    static int unsigned used[{{ mode_codes|length }}] = '{ {{- mode_codes|join(", ") -}} };
    mode = {{ mode_bits }}'(used[int'(mode) % {{ mode_codes|length }}]);
{% endif %}
{% if nibbles %}
    static bit [3:0] legal[{{ nibbles|length }}] = '{ {{- nibbles|join(", ") -}} };
    for (int i = 0; i < {{ metadata_elements }}; i++) metadata[4*i+:4] = legal[metadata[4*i+:4] % {{ nibbles|length }}];
{% endif %}
  endfunction
{% endif %}

  virtual function string convert2string();
    return $sformatf("{% for field in inputs %}{{ field.name }}=%h {% endfor %}(%s)", {{ names }}, kind);
  endfunction
endclass

// One result word{{ ": {flags, d}" if flags }}, with X and Z as they came.
class {{ p }}_result extends uvm_sequence_item;
  `uvm_object_utils({{ p }}_result)
  logic [OUT_BITS-1:0] data;
  {{ p }}_item item;  // of a prediction: the operands that it is of

  function new(string name = "{{ p }}_result");
    super.new(name);
  endfunction
endclass

// One dot product with its expected result: what coverage looks at. c is what the accumulator really started from.
class {{ p }}_dot_item extends uvm_sequence_item;
  `uvm_object_utils({{ p }}_dot_item)
{% for field in dot_fields %}
  bit [{{ field.width - 1 }}:0] {{ field.name }};
{% endfor %}

  function new(string name = "{{ p }}_dot_item");
    super.new(name);
  endfunction
endclass
{% if load_alone %}

// A c that is loaded alone must be one that the arithmetic hands on as it is: no step says what becomes of others.
function automatic void {{ p }}_settle({{ p }}_item t);
  {{ p }}_dot_item dot = {{ p }}_dot_item::type_id::create("dot");
  int i = 0, j = 0;  // units that keep their accumulator take no tiles
{% for line in gather %}
  {{ line }}
{% endfor %}
{% for name in factors %}
  dot.{{ name }} = '0;
{% endfor %}
  for (int turn = 0; turn < 2; turn++) begin
    {{ dot_results_word }} = {{ p }}_dot({{ dot_names }});
    dot.c = dot.d;
  end
  t.c = dot.c;
endfunction
{% endif %}
