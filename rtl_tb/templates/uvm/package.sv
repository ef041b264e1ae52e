// A UVM environment for {{ top }} as {{ unit }}. {{ made }}
package {{ p }}_uvm_pkg;
  import uvm_pkg::*;
  import {{ p }}_pkg::*;
  `include "uvm_macros.svh"

  localparam int IN_BITS = {{ in_bits }};
  localparam int OUT_BITS = {{ out_bits }};
  localparam int VECTORS = {{ count }};  // in vectors.hex

  // The compare policy of the unit's description: NaN {{ nan }}, zero {{ zero }}.
{{ compare }}
{% for name in parts %}
  `include "{{ p }}_{{ name }}.svh"
{% endfor %}
endpackage
