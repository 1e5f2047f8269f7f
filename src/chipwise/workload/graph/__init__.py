"""A network as the list of its operators: what each multiplies, reads and writes, and the counts for prediction."""
