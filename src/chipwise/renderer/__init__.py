"""A plan as files: one value that says what to deploy, and one file per target that writes it down."""
