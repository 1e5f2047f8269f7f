"""What the `kubernetes` engine is made of: a connection, a picture kept by watches, and what is read from it and written."""
