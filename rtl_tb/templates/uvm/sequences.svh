// Plays vectors.hex, or only the vectors of one kind; each line holds the operand word, the result word and the kind.
class {{ p }}_file_seq extends uvm_sequence #({{ p }}_item);
  `uvm_object_utils({{ p }}_file_seq)
  localparam int DIGITS = (IN_BITS + OUT_BITS + 3) / 4;
  string file = "vectors.hex";
  int unsigned vectors = VECTORS;  // lines that the file must hold
  string only_kind = "";           // empty: all
  int unsigned played;

  function new(string name = "{{ p }}_file_seq");
    super.new(name);
  endfunction

  virtual task body();
    string line, kind;
    bit [IN_BITS+OUT_BITS-1:0] word;
    int unsigned found = 0;
    int fd = $fopen(file, "r");
    if (fd == 0) begin
      `uvm_fatal("VECTORS", {"cannot read ", file})
      return;
    end
    while ($fgets(line, fd) > 0) begin
      if (line.len() < 2 || line.substr(0, 1) == "//") continue;
      if (!well_formed(line) || $sscanf(line, "%h // %s", word, kind) != 2) `uvm_fatal("VECTORS", {file, " holds no vector: ", line})
      found++;
      if (only_kind == "" || kind == only_kind) send(word, kind);
    end
    $fclose(fd);
    if (found != vectors)
      `uvm_fatal("VECTORS", $sformatf("%s holds %0d vectors, expected %0d", file, found, vectors))
    if (played == 0) `uvm_fatal("VECTORS", {file, " holds no vector of kind ", only_kind})
  endtask

  // $sscanf takes x, z and words that were cut for hexadecimal, too.
  protected function bit well_formed(string line);
    if (line.len() <= DIGITS || line.getc(DIGITS) != " ") return 0;
    for (int i = 0; i < DIGITS; i++)
      if (!(line.getc(i) inside {["0" : "9"], ["a" : "f"]})) return 0;
    return 1;
  endfunction

  protected task send(bit [IN_BITS+OUT_BITS-1:0] word, string kind);
    {{ p }}_item item = {{ p }}_item::type_id::create("item");
    start_item(item);
    item.set_word(word[IN_BITS+OUT_BITS-1:OUT_BITS]);
    item.kind = kind;
    item.expected = word[OUT_BITS-1:0];
{% if state %}
    item.has_expected = only_kind == "";  // results follow from those before, which are left out else
{% else %}
    item.has_expected = 1;
{% endif %}
    finish_item(item);
    played++;
  endtask
endclass

// Operands of random bits; for a start: structured operands find more.
class {{ p }}_random_seq extends uvm_sequence #({{ p }}_item);
  `uvm_object_utils({{ p }}_random_seq)
  int unsigned count = 1000;

  function new(string name = "{{ p }}_random_seq");
    super.new(name);
  endfunction

  virtual task body();
    for (int unsigned i = 0; i < count; i++) begin
      {{ p }}_item item = {{ p }}_item::type_id::create("item");
      start_item(item);
      if (item.randomize() == 0) `uvm_fatal("RANDOM", "randomize failed")
{% if load_alone %}
      if (item.load) {{ p }}_settle(item);
{% endif %}
      finish_item(item);
    end
  endtask
endclass
