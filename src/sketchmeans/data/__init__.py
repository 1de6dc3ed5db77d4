"""Where rows come from: arrays, CSR matrices, files and tables, in fixed blocks."""
