"""Files that people hand in: read whole, safely, within limits, with the line of every value."""
