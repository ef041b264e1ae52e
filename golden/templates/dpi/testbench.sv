// Example: the DPI-C model against expected results of the reference model. Put your DUT next to the call.
module {{ prefix }}_tb;
  import {{ prefix }}_pkg::*;

  bit [{{ word_width }}-1:0] vectors [0:{{ examples }}-1];
  int errors = 0;

  initial begin
{% for one in inputs %}
    bit [{{ one.width - 1 }}:0] {{ one.name }};
{% endfor %}
    bit [{{ width - 1 }}:0] d, expected;
    $readmemh("{{ prefix }}_vectors.hex", vectors);
    for (int i = 0; i < {{ examples }}; i++) begin
      {{ "{" }}{{ inputs | join(", ", attribute="name") }}, expected} = vectors[i];
      d = {{ prefix }}_dot({{ inputs | join(", ", attribute="name") }});
      if (d !== expected) begin
        errors++;
        $display("vector %0d: model %h, expected %h", i, d, expected);
      end
    end
    if (errors != 0) $fatal(1, "FAIL: %0d of {{ examples }} vectors differ", errors);
    $display("PASS: {{ examples }} vectors");
    $finish;
  end
endmodule
