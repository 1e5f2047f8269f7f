"""Rules played on traces: what each would have cost, and the least that anyone could have paid."""
